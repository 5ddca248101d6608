"""Epoch sizes settle where epochs take as long as wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.coordinator.sizing import EpochSizer


def settle(sizer: EpochSizer, overhead_s: float, per_unit_s: float, epochs: int = 60) -> float:
    seconds = 0.0
    for _ in range(epochs):
        seconds = overhead_s + sizer.units * per_unit_s
        sizer.observe(sizer.units, seconds)
    return seconds


@given(st.floats(0.001, 0.3), st.floats(1e-7, 1e-3), st.floats(0.7, 10))
def test_epochs_come_to_take_as_long_as_wanted(overhead_s: float, per_unit_s: float, target_s: float) -> None:
    assert settle(EpochSizer(target_s, 20_000), overhead_s, per_unit_s) == pytest.approx(target_s, rel=0.2)


@given(st.floats(0.01, 0.3), st.floats(1e-7, 1e-5))
def test_a_target_below_the_overhead_does_not_shrink_epochs_to_nothing(overhead_s: float, per_unit_s: float) -> None:
    sizer = EpochSizer(0.001, 20_000)
    seconds = settle(sizer, overhead_s, per_unit_s)
    assert sizer.units * per_unit_s >= 0.2 * seconds


def test_an_epoch_that_found_little_to_read_teaches_nothing_about_the_limit() -> None:
    sizer = EpochSizer(1.0, first_units=1000)
    sizer.observe(10, 5.0)
    assert sizer.units == 1000


@given(st.floats(0.01, 0.99))
def test_a_quick_first_epoch_grows_the_second_which_stays_within_8_times_the_target(seconds: float) -> None:
    sizer = EpochSizer(1.0, first_units=1000)
    sizer.observe(1000, seconds)
    assert 8000 <= sizer.units <= 24_000
    assert seconds * sizer.units / 1000 <= 8


def test_a_slow_first_epoch_is_measured_again_before_it_is_judged() -> None:
    sizer = EpochSizer(1.0, first_units=1000)
    sizer.observe(1000, 5.0)
    assert sizer.units == 1000
    sizer.observe(1000, 5.0)
    assert sizer.units == 250
