"""Where epochs end, and where a job fails and is restored, is nothing a function or a program can notice.

At a source's one subtask, watermarks follow after fixed numbers of records and at the end, so timers fire between the same
records however epochs are cut.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from firesteel.common import Duration, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime import timestamps
from firesteel.testing import FunctionHarness, GraphHarness
from tests.testing.functions import LATE, Everything

Step = tuple[str, Any]

keys = st.sampled_from("abc")
numbers = st.integers(0, 60)
steps = st.one_of(
    st.tuples(st.just("process"), st.tuples(keys, numbers, st.none() | st.integers(0, 200))),
    st.tuples(st.just("watermark"), st.integers(0, 220)),
    st.tuples(st.just("advance_clock"), st.integers(0, 30)),
)
interruptions = st.lists(st.sampled_from(["", "", "cut", "restored", "snapshot"]), min_size=1, max_size=7)


def drive(script: list[Step], interruptions: list[str]) -> Any:
    h = FunctionHarness(Everything(), key_selector=lambda v: v[0])
    output, late = [], []
    highest = -1
    for index, (what, what_with) in enumerate(script):
        if what == "process":
            key, number, time = what_with
            h.process((key, number), time)
        elif what == "watermark":
            highest = max(highest, what_with)
            h.watermark(highest)
        else:
            h.advance_clock(what_with)
        interruption = interruptions[index % len(interruptions)]
        if interruption in ("cut", "snapshot"):
            getattr(h, interruption)()
        elif interruption == "restored":
            output += h.output_with_timestamps()
            late += h.side_output_with_timestamps(LATE)
            with h as old:
                h = old.restored()
    with h:
        output += h.output_with_timestamps()
        late += h.side_output_with_timestamps(LATE)
        states = {name: h.state(name) for name in ("last", "seen", "counts", "total", "mean")}
        return output, late, states, set(h.timers())


@settings(max_examples=60, deadline=None, phases=[Phase.explicit, Phase.generate, Phase.shrink])
@given(script=st.lists(steps, max_size=30), interruptions=interruptions)
def test_a_function_does_not_notice_cuts_snapshots_and_restores(script: list[Step], interruptions: list[str]) -> None:
    assert drive(script, interruptions) == drive(script, [""])


def program(records: list[tuple[str, int, int]], parallelism: int) -> tuple[StreamExecutionEnvironment, Any, Any]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(10))
    stream = env.from_collection(records).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda record, _: record[2])
    )
    stream.set_parallelism(1)
    main = stream.key_by(lambda record: record[0]).process(Everything())
    return env, main, main.get_side_output(LATE)


def per_key(records: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for record in records:
        found.setdefault(record[0], []).append(record)
    return found


def run(records: list[tuple[str, int, int]], parallelism: int, **options: Any) -> tuple[Any, Any]:
    env, main, late = program(records, parallelism)
    with GraphHarness(env, collect=[main, late], **options) as h:
        h.run()
        return per_key(h.results(main)), per_key(h.results(late))


@settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    seed=st.randoms(use_true_random=False),
    count=st.integers(0, 300),
    parallelism=st.integers(1, 3),
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5).filter(any),
    failures=st.lists(st.integers(1, 12), max_size=3, unique=True),
    checkpoint_every=st.integers(1, 3),
    every=st.sampled_from([1, 7, 16]),
)
def test_timers_state_and_side_outputs_do_not_depend_on_cuts_or_failures(
    seed: Any,
    count: int,
    parallelism: int,
    sizes: list[int],
    failures: list[int],
    checkpoint_every: int,
    every: int,
) -> None:
    records = [(seed.choice("abcdef"), seed.randrange(100), n + seed.randrange(-25, 25)) for n in range(count)]
    with mock.patch.object(timestamps, "WATERMARK_RECORDS", every):
        uncut = run(records, parallelism)
        assert run(records, parallelism, epoch_records=sizes) == uncut
        options = {"fail_at": failures, "checkpoint_every": checkpoint_every}
        assert run(records, parallelism, epoch_records=sizes, **options) == uncut


@pytest.mark.parametrize("sizes", [[4096], [1, 4095, 4097], [3000]])
def test_the_same_holds_for_the_real_distance_between_watermarks(sizes: list[int]) -> None:
    records = [("abcdef"[n % 6], n % 97, n + n * 7919 % 31) for n in range(10_000)]
    uncut = run(records, 2, epoch_records=20_000)
    assert run(records, 2, epoch_records=sizes) == uncut
    assert run(records, 2, epoch_records=sizes, fail_at=[2]) == uncut
