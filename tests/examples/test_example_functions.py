"""The examples' functions with inputs, times and failures of the test's choice."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.broadcast_enrichment import PAYMENTS, RATES, converted
from examples.buffering_sink import WORDS, PrintInPairs
from examples.deduplication import SeenFirst
from examples.enrichment import WithPlace
from examples.funnel import MINUTE, Funnel
from examples.late_readings import LATE, MinuteAverage
from examples.metrics import READINGS as TEMPERATURES
from examples.metrics import Plausible
from examples.rising_temperature import RISING_FOR, KeepsRising
from examples.silent_sensor import Silence, silent_sensors
from examples.temperature_alert import LIMIT, by_class, by_function
from examples.temperature_jump import jumps
from examples.three_rises import ThreeRises
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.testing import FunctionHarness, GraphHarness, run_locally

READINGS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from([-20.0, -5.0, 0.0, 5.0, 9.5, 10.0, 20.0])), max_size=40
)


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def alerts_by_hand(readings: list[tuple[str, float]]) -> list[tuple[str, float, float]]:
    last: dict[str, float] = {}
    found = []
    for sensor, temperature in readings:
        if sensor in last and abs(temperature - last[sensor]) > LIMIT:
            found.append((sensor, last[sensor], temperature))
        last[sensor] = temperature
    return found


@given(READINGS, st.integers(0, 2**32))
def test_both_temperature_alerts_agree_however_epochs_are_cut(readings: list[tuple[str, float]], seed: int) -> None:
    by_sensor = [[alert for alert in alerts_by_hand(readings) if alert[0] == sensor] for sensor in "abc"]
    for program in (by_class, by_function):
        env = environment()
        found = run_locally(env, program(env.from_collection(readings)), seed=seed)
        assert [[alert for alert in found if alert[0] == sensor] for sensor in "abc"] == by_sensor


def test_an_event_is_let_through_again_when_its_id_was_forgotten() -> None:
    with FunctionHarness(SeenFirst(), key_selector=lambda event: event[0]) as harness:
        harness.process(("e1", 1)).advance_clock(30 * 60_000).process(("e1", 2))
        assert harness.output() == [("e1", 1)]
        harness.advance_clock(30 * 60_000).process(("e1", 3))  # an hour after the first: repeats did not prolong it
        assert harness.output() == [("e1", 1), ("e1", 3)]


def test_a_sensor_is_missed_two_seconds_after_its_last_reading_and_only_once() -> None:
    with FunctionHarness(Silence(), key_selector=lambda sensor: sensor) as harness:
        harness.process("oven").process("cellar").advance_clock(1_500).process("oven").advance_clock(1_999)
        assert harness.output() == ["nothing heard of the cellar for two seconds"]
        harness.advance_clock(1)
        assert harness.take()[1:] == ["nothing heard of the oven for two seconds"]
        harness.advance_clock(60_000)
        assert harness.output() == []


def test_silence_is_noticed_after_a_restart_as_well() -> None:
    env = environment()
    silent = silent_sensors(env.from_collection(["oven", "oven", "oven"]))
    with GraphHarness(env, collect=silent, epoch_records=1, checkpoint_every=1) as harness:
        harness.step()
        harness.fail().advance_clock(2_000).step()
        assert harness.results() == ["nothing heard of the oven for two seconds"]


def rises_by_hand(readings: list[tuple[str, int, float]]) -> list[int]:
    """When the rises began that no fall ended within ten seconds, of one sensor."""
    found: list[int] = []
    since, last = None, None
    for _, time, temperature in readings:
        if last is not None and temperature > last and since is None:
            since = time
        elif last is not None and temperature <= last and since is not None:
            found += [since] if time - since >= RISING_FOR else []
            since = None
        last = temperature
    return found if since is None else [*found, since]


@given(
    st.lists(st.tuples(st.integers(1, 6_000), st.sampled_from([1.0, 2.0, 3.0, 4.0])), max_size=25),
    st.lists(st.booleans(), min_size=25, max_size=25),
)
def test_each_long_rise_is_reported_once_however_late_watermarks_come(
    steps: list[tuple[int, float]], watermarks: list[bool]
) -> None:
    times = accumulate(delay for delay, _ in steps)
    readings = [("oven", time, temperature) for time, (_, temperature) in zip(times, steps, strict=True)]
    with FunctionHarness(KeepsRising(), key_selector=lambda reading: reading[0]) as harness:
        for reading, now in zip(readings, watermarks, strict=False):
            harness.process(reading, reading[1])
            if now:
                harness.watermark(reading[1] - 1)
        harness.end_of_input()
        assert harness.output() == [f"oven has been rising since {time}" for time in rises_by_hand(readings)]


@pytest.mark.parametrize("places_first", [True, False])
def test_enrichment_is_the_same_whichever_stream_comes_first(places_first: bool) -> None:
    selectors = (lambda reading: reading[0], lambda known: known[0])
    with FunctionHarness(WithPlace(), key_selector=selectors) as harness:
        if places_first:
            harness.process2(("s1", "kitchen"))
        harness.process1(("s1", 20.0)).process1(("s2", 12.5)).process1(("s1", 21.5))
        harness.process2(("s1", "kitchen"))
        assert harness.output() == [("s1", "kitchen", 20.0), ("s1", "kitchen", 21.5)]
        assert harness.state("waiting") == {"s2": [12.5]}


def test_metrics_are_reported_under_their_names() -> None:
    with FunctionHarness(Plausible(), parameters={"highest": "200"}) as harness:
        harness.process_all(TEMPERATURES)
        reported = harness.metrics()
    assert reported["dropped"] == 2
    assert reported["limit"] == 200
    assert reported["readings.kept"]["count"] == 4


def test_a_buffering_sink_saves_what_it_keeps_back_and_goes_on_with_it_after_a_failure() -> None:
    """Three words are done with the checkpoint, the third of them in the buffer; what came after it comes again."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection(WORDS).add_sink(PrintInPairs()).name("pairs")
    with GraphHarness(env, epoch_records=3, checkpoint_every=1) as harness:
        harness.step()
        assert harness.printed() == ["to and be"]
        harness.fail().run()
        assert harness.restarts == 1
    assert harness.printed() == ["to and be", "or and not", "to and be", "that and is"]


def test_counts_are_the_same_although_the_job_fails_between_two_barriers() -> None:
    """b2 b3 c1 | a2 a2 c2: the barrier is before the second half, and the failure after it."""
    records = [("b", 2), ("b", 3), ("c", 1), ("a", 2), ("a", 2), ("c", 2)]

    def totals(**failure: list[int]) -> dict[str, int]:
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        stream = env.from_collection(records).key_by(lambda r: r[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
        with GraphHarness(
            env, collect=stream.name("totals"), epoch_records=3, checkpoint_every=1, **failure
        ) as harness:
            updates = harness.run().results()
            assert harness.restarts == len(failure)
            assert sorted(updates) == [("a", 2), ("a", 4), ("b", 2), ("b", 5), ("c", 1), ("c", 3)]
            return {key: harness.state("totals", "/reduced", key)[1] for key in "abc"}

    assert totals() == totals(fail_at=[2]) == {"a": 4, "b": 5, "c": 3}


def jumps_by_hand(readings: list[tuple[str, int, float]]) -> list[tuple[str, float, float]]:
    pairs = [(a, b) for a in readings for b in readings if a[0] == b[0] and 0 < b[1] - a[1] <= 60_000]
    return sorted((a[0], a[2], b[2]) for a, b in pairs if abs(a[2] - b[2]) >= 20)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 200), st.integers(0, 60)), max_size=30),
    st.integers(0, 2**32),
)
def test_jumps_are_found_between_any_two_readings_that_are_not_late(
    drawn: list[tuple[str, int, int]], seed: int
) -> None:
    readings = [(sensor, second * 1000, float(temperature)) for sensor, second, temperature in drawn]
    env = environment()
    found = run_locally(env, jumps(env.from_collection(readings)), seed=seed)
    said = sorted((sensor, float(before), float(after)) for sensor, _, _, before, _, after, *_ in map(str.split, found))
    assert said == jumps_by_hand(readings)


def test_old_readings_do_not_count_and_leave_nothing_behind() -> None:
    with FunctionHarness(ThreeRises(), key_selector=lambda reading: reading[0]) as harness:
        for time, temperature in [(0, 1.0), (10_000, 2.0), (60_000, 3.0), (65_000, 4.0), (66_000, 3.0)]:
            harness.process(("oven", time, temperature), time)
        assert harness.output() == ["oven rose from 2.0 to 4.0 within 55 seconds"]
        assert harness.end_of_input().state("rising") == {} and harness.timers() == []


def test_a_visitor_is_forgotten_when_they_order_and_when_they_give_up() -> None:
    with FunctionHarness(Funnel(), key_selector=lambda event: event[0]) as harness:
        for minute, did in [(0, "cart"), (1, "view"), (2, "order"), (20, "cart"), (49, "order")]:
            harness.process(("ann", minute, did), minute * MINUTE)
        assert harness.take() == [("ann", "ordered")]  # of what is not the next step nothing comes
        assert harness.timers() == [] and harness.state("step") == {}
        harness.process(("ann", 60, "view"), 60 * MINUTE).watermark(90 * MINUTE)
        assert harness.take() == [("ann", "gave up after view")] and harness.state("step") == {}


def test_a_reading_of_a_minute_that_is_over_is_late() -> None:
    with FunctionHarness(MinuteAverage(), key_selector=lambda reading: reading[0]) as harness:
        harness.process(("oven", 59, 10.0), 59_000).watermark(59_998).process(("oven", 0, 20.0), 0)
        assert harness.output() == []
        harness.watermark(59_999).process(("oven", 1, 30.0), 1_000)
        assert harness.output() == ["oven, minute 0: 15.0"]
        assert harness.side_output(LATE) == [("oven", 1, 30.0)]


@given(
    st.permutations([*((True, payment) for payment in PAYMENTS), *((False, rate) for rate in RATES)]), st.integers(0, 9)
)
def test_payments_are_converted_whenever_their_rate_comes(order: list[tuple[bool, tuple]], seed: int) -> None:  # type: ignore[type-arg]
    env = environment()
    payments, rates = ([record for kind, record in order if kind is which] for which in (True, False))
    stream = converted(env.from_collection(payments), env.from_collection(rates))
    assert sorted(run_locally(env, stream, seed=seed)) == [("ann", 20.0), ("ann", 60.0), ("bob", 60.0)]
