"""Names of Flink 1.x, in which many of the examples people find are written. Each says what is used today.

Fields by number or name (`key_by(0)`, `key_by("word", "town")`, `sum(1)`) are not other names: the methods themselves take
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from firesteel.common.time import Duration, Time
from firesteel.common.watermark_strategy import (
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream


class TimestampsAndWatermarks(ABC):
    """Base of what Flink 1.x's `assign_timestamps_and_watermarks` took."""

    @abstractmethod
    def to_watermark_strategy(self) -> WatermarkStrategy:
        """The same as a strategy of today."""


class BoundedOutOfOrdernessTimestampExtractor(TimestampsAndWatermarks):
    """Today: `WatermarkStrategy.for_bounded_out_of_orderness(...).with_timestamp_assigner(...)`."""

    def __init__(self, max_out_of_orderness: Time | Duration) -> None:
        """
        :param max_out_of_orderness: how much older than the newest before it a record can be without being late.
        """
        if isinstance(max_out_of_orderness, Time):
            max_out_of_orderness = Duration.of_millis(max_out_of_orderness.to_milliseconds())
        self._max_out_of_orderness = max_out_of_orderness

    @abstractmethod
    def extract_timestamp(self, element: Any) -> int:
        """The event time of a record, in milliseconds since 1970."""

    def to_watermark_strategy(self) -> WatermarkStrategy:
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(self._max_out_of_orderness)
        return strategy.with_timestamp_assigner(_Extractor(self.extract_timestamp))


class AscendingTimestampExtractor(TimestampsAndWatermarks):
    """Today: `WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(...)`."""

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int:
        """The event time of a record, in milliseconds since 1970; never falls."""

    def to_watermark_strategy(self) -> WatermarkStrategy:
        return _ascending(self.extract_ascending_timestamp)


class AssignerWithPunctuatedWatermarks(TimestampsAndWatermarks, TimestampAssigner):
    """Today: `WatermarkStrategy.for_generator(...).with_timestamp_assigner(...)`."""

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> int | None:
        """The watermark after this record, None when it stays as it was."""

    def to_watermark_strategy(self) -> WatermarkStrategy:
        return WatermarkStrategy.for_generator(partial(_Punctuated, self)).with_timestamp_assigner(self)


class AssignerWithPeriodicWatermarks(TimestampsAndWatermarks, TimestampAssigner):
    """Today: `WatermarkStrategy.for_generator(...).with_timestamp_assigner(...)`."""

    @abstractmethod
    def get_current_watermark(self) -> int | None:
        """The watermark now, None when it stays as it was."""

    def to_watermark_strategy(self) -> WatermarkStrategy:
        return WatermarkStrategy.for_generator(partial(_Periodic, self)).with_timestamp_assigner(self)


class Timestampable(Protocol):
    """What `Flink1Stream` is mixed into."""

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream: ...


class Flink1Stream:
    """Names of streams."""

    def assign_ascending_timestamps(self: Timestampable, extractor: Callable[[Any], int]) -> DataStream:
        """Today: `assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()...)`."""
        return self.assign_timestamps_and_watermarks(_ascending(extractor))


def _ascending(extract: Callable[[Any], int]) -> WatermarkStrategy:
    return WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Extractor(extract))


class _Extractor(TimestampAssigner):
    """An assigner that does not ask for the timestamp so far."""

    def __init__(self, extract: Callable[[Any], int]) -> None:
        self._extract = extract

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self._extract(value)


class _Punctuated(WatermarkGenerator):
    def __init__(self, assigner: AssignerWithPunctuatedWatermarks) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._assigner.check_and_get_next_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Records are all it goes by."""


class _Periodic(WatermarkGenerator):
    def __init__(self, assigner: AssignerWithPeriodicWatermarks) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """The assigner saw the record when it gave it its timestamp."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        watermark = self._assigner.get_current_watermark()
        if watermark is not None:
            output.emit_watermark(watermark)
