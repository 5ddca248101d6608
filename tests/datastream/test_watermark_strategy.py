import pickle

import pytest

from firesteel.common import (
    Duration,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from firesteel.common.time import Time
from firesteel.datastream import flink1


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Follower(WatermarkGenerator):
    def on_event(self, event, event_timestamp, output):
        output.emit_watermark(Watermark(event_timestamp))

    def on_periodic_emit(self, output):
        pass


class Emitted(WatermarkOutput):
    def __init__(self):
        self.watermarks = []

    def emit_watermark(self, watermark):
        self.watermarks.append(watermark)

    def mark_idle(self):
        self.watermarks.append("idle")

    def mark_active(self):
        self.watermarks.append("active")


def test_ready_made_strategies():
    assert WatermarkStrategy.no_watermarks().kind == "none"
    monotonous = WatermarkStrategy.for_monotonous_timestamps()
    assert (monotonous.kind, monotonous.out_of_orderness_ms) == ("bounded", 0)
    bounded = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    assert (bounded.kind, bounded.out_of_orderness_ms) == ("bounded", 5000)
    assert (bounded.timestamp_assigner, bounded.idleness_ms, bounded.generator_supplier) == (None, None, None)


def test_strategies_are_not_changed_but_copied_and_settings_add_up():
    first = WatermarkStrategy.for_monotonous_timestamps()
    assigner = Second()
    second = first.with_timestamp_assigner(assigner)
    third = second.with_idleness(Duration.of_minutes(1))
    fourth = third.with_watermark_alignment("group", Duration.of_seconds(20), Duration.of_seconds(2))
    assert first.timestamp_assigner is None
    assert (second.timestamp_assigner, second.idleness_ms) == (assigner, None)
    assert (third.timestamp_assigner, third.idleness_ms, third.alignment_group) == (assigner, 60_000, None)
    assert (fourth.alignment_group, fourth.alignment_drift_ms, fourth.alignment_interval_ms) == ("group", 20_000, 2000)
    assert fourth.idleness_ms == 60_000


def test_a_function_does_as_timestamp_assigner():
    strategy = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, before: value + before)
    assert strategy.timestamp_assigner.extract_timestamp(1, 2) == 3


def test_custom_generators_are_made_by_a_class_or_a_function():
    for supplier in (Follower, lambda: Follower()):
        strategy = WatermarkStrategy.for_generator(supplier)
        output = Emitted()
        strategy.generator_supplier().on_event("event", 7, output)
        assert (strategy.kind, output.watermarks) == ("custom", [7])


def test_a_watermark_is_its_timestamp():
    assert Watermark(7) == 7
    assert Watermark(7).get_timestamp() == 7
    assert Watermark.MAX_WATERMARK == 2**63 - 1


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda s: s.for_bounded_out_of_orderness(Duration.of_millis(-1)), ValueError, "out-of-orderness.*at least 0"),
        (lambda s: s.for_bounded_out_of_orderness(5), TypeError, "must be a Duration such as"),
        (lambda s: s.no_watermarks().with_idleness(Duration.of_millis(0)), ValueError, "idle timeout.*at least 1"),
        (
            lambda s: s.no_watermarks().with_watermark_alignment("g", Duration.of_millis(-1)),
            ValueError,
            "drift.*at least 0",
        ),
        (lambda s: s.for_generator(Follower()), TypeError, "every subtask needs its own.*pass its class"),
        (lambda s: s.for_generator(5), TypeError, "a function that makes generators, not 5"),
        (lambda s: s.for_generator(lambda context: Follower()), TypeError, "without arguments"),
        (lambda s: s.no_watermarks().with_timestamp_assigner(Second), TypeError, "takes a TimestampAssigner"),
        (lambda s: s.no_watermarks().with_timestamp_assigner(5), TypeError, "takes a TimestampAssigner"),
    ],
)
def test_wrong_arguments_are_refused(build, error, message):
    with pytest.raises(error, match=message):
        build(WatermarkStrategy)


class Flink1Bounded(flink1.BoundedOutOfOrdernessTimestampExtractor):
    def extract_timestamp(self, element):
        return element * 10


class Flink1Ascending(flink1.AscendingTimestampExtractor):
    def extract_ascending_timestamp(self, element):
        return element * 10


class Flink1Punctuated(flink1.AssignerWithPunctuatedWatermarks):
    def extract_timestamp(self, value, record_timestamp):
        return value * 10

    def check_and_get_next_watermark(self, last_element, extracted_timestamp):
        return extracted_timestamp if last_element % 2 else None


class Flink1Periodic(flink1.AssignerWithPeriodicWatermarks):
    latest = 0

    def extract_timestamp(self, value, record_timestamp):
        self.latest = max(self.latest, value * 10)
        return value * 10

    def get_current_watermark(self):
        return self.latest - 5


def test_flink_1_extractors_become_bounded_strategies():
    bounded = Flink1Bounded(Time.seconds(3)).to_watermark_strategy()
    ascending = Flink1Ascending().to_watermark_strategy()
    assert (bounded.kind, bounded.out_of_orderness_ms) == ("bounded", 3000)
    assert (ascending.kind, ascending.out_of_orderness_ms) == ("bounded", 0)
    assert [s.timestamp_assigner.extract_timestamp(2, -1) for s in (bounded, ascending)] == [20, 20]


def test_flink_1_assigners_keep_making_their_watermarks_after_being_sent():
    for assigner, expected in ((Flink1Punctuated(), [10, 30]), (Flink1Periodic(), [5, 15, 25])):
        strategy = pickle.loads(pickle.dumps(assigner.to_watermark_strategy()))
        generator, output = strategy.generator_supplier(), Emitted()
        for value in (1, 2, 3):
            timestamp = strategy.timestamp_assigner.extract_timestamp(value, -1)
            generator.on_event(value, timestamp, output)
            generator.on_periodic_emit(output)
        assert output.watermarks == expected
