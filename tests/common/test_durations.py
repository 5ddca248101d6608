from datetime import timedelta

import pytest

from firesteel.common import Duration, Instant, Time
from firesteel.common.durations import parse_duration_ms


@pytest.mark.parametrize(
    ("value", "millis"),
    [
        (1000, 1000),
        (0, 0),
        ("10", 10),
        ("10 s", 10_000),
        ("500ms", 500),
        ("1 min", 60_000),
        ("1m", 60_000),
        ("1 M", 60_000),
        (" 3 sec ", 3_000),
        ("2 hours", 7_200_000),
        ("2d", 172_800_000),
        ("2000 µs", 2),
        (Duration.of_minutes(1), 60_000),
        (Time.seconds(2), 2_000),
        (timedelta(seconds=1.5), 1_500),
    ],
    ids=str,
)
def test_durations_are_read_as_flink_reads_them(value, millis):
    assert parse_duration_ms(value) == millis


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "whole number and a unit"),
        ("s", "whole number and a unit"),
        ("1.5s", "whole number and a unit"),
        ("-1 s", "whole number and a unit"),
        ("1 s 2", "whole number and a unit"),
        ("1 w", "no unit 'w'; the units are d, h, m, s, ms, µs, ns"),
        ("10 ns", "finer than that"),
        (Duration.of_nanos(1), "finer than that"),
        (-1, "cannot be negative"),
        (timedelta(seconds=-1), "cannot be negative"),
        (1.5, "milliseconds as an int"),
        (True, "milliseconds as an int"),
        (None, "milliseconds as an int"),
    ],
)
def test_anything_else_is_refused_with_the_reason(value, reason):
    with pytest.raises(ValueError, match=reason):
        parse_duration_ms(value)


def test_units_of_durations_and_times_agree():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_seconds(86_400)
    assert Duration.of_days(1).to_millis() == Time.days(1).to_milliseconds() == 86_400_000
    assert Time.hours(1) == Time.minutes(60) == Time.milliseconds(3_600_000)
    assert len({Time.seconds(1), Time.milliseconds(1000)}) == 1
    assert Duration.of_millis(1) < Duration.of_seconds(1)


def test_amounts_show_their_unit():
    assert str(Time.seconds(2)) == str(Duration.of_seconds(2)) == "2000 ms"
    assert str(Duration.of_nanos(5)) == "5 ns"


@pytest.mark.parametrize("millis", [0, 1, 1999, -1, -1001])
def test_instants_keep_milliseconds_before_and_after_1970(millis):
    instant = Instant.of_epoch_milli(millis)
    assert instant.to_epoch_milli() == millis
    assert 0 <= instant.nanos < 1_000_000_000
