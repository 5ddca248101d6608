"""How records get timestamps, and how far event time has come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, ClassVar

from firesteel.common.time import Duration

__all__ = [
    "NO_TIMESTAMP",
    "TimestampAssigner",
    "Watermark",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]

NO_TIMESTAMP = -(2**63)
"""What a timestamp assigner is given for a record that has no timestamp yet; also the first watermark."""


class Watermark(int):
    """The event time up to which records are complete. An int of milliseconds, which can be used in its place."""

    MAX_WATERMARK: ClassVar[Watermark]

    def get_timestamp(self) -> int:
        return int(self)


Watermark.MAX_WATERMARK = Watermark(2**63 - 1)


class TimestampAssigner(ABC):
    """Gives the event time of a record."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The event time of a record, in milliseconds since 1970.

        :param record_timestamp: the one the record has; `NO_TIMESTAMP`, which is negative, when it has none.
        """


class WatermarkOutput(ABC):
    """Where a generator's watermarks go. Only those that are above all before them count."""

    @abstractmethod
    def emit_watermark(self, watermark: int) -> None:
        """Declare that no record with a timestamp up to this one will follow; an int or a `Watermark`."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Let watermarks go on without this input until it emits one again."""

    @abstractmethod
    def mark_active(self) -> None:
        """Take part again, before the next watermark."""


class WatermarkGenerator(ABC):
    """Derives watermarks from the records it sees. One for each subtask and input split."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Look at one record; may emit a watermark."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every now and then; may emit a watermark."""


@dataclass(frozen=True)
class WatermarkStrategy:
    """How timestamps are found and watermarks made. `with_...` methods return a changed copy.

    :ivar kind: "none"; "bounded": behind the largest timestamp by the out-of-orderness and 1 ms; "custom": generator.
    """

    kind: str
    out_of_orderness_ms: int = 0
    generator_supplier: Callable[[], WatermarkGenerator] | None = None
    timestamp_assigner: TimestampAssigner | None = None
    idleness_ms: int | None = None
    alignment_group: str | None = None
    alignment_drift_ms: int | None = None
    alignment_interval_ms: int | None = None

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Timestamps that never fall within one input split."""
        return WatermarkStrategy("bounded")

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration) -> WatermarkStrategy:
        """Records at most this much older than the newest before them; older ones are late."""
        return WatermarkStrategy("bounded", _millis("the maximum out-of-orderness", max_out_of_orderness, 0))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No event time; records can have timestamps all the same."""
        return WatermarkStrategy("none")

    @staticmethod
    def for_generator(generator_supplier: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Watermarks of your own.

        :param generator_supplier: called without arguments for each new generator; the generator's class will do.
        """
        if isinstance(generator_supplier, WatermarkGenerator):
            raise TypeError(
                f"for_generator() takes a function that makes generators, as every subtask needs its own, not the "
                f"generator {generator_supplier!r:.200}: pass its class, or lambda: {type(generator_supplier).__name__}(...)"
            )
        if not callable(generator_supplier):
            raise TypeError(f"for_generator() takes a function that makes generators, not {generator_supplier!r:.200}")
        try:
            signature(generator_supplier).bind()
        except TypeError as error:
            raise TypeError(f"for_generator() calls {generator_supplier!r:.200} without arguments: {error}") from None
        except ValueError:
            pass  # something built in that does not tell its signature
        return WatermarkStrategy("custom", generator_supplier=generator_supplier)

    def with_timestamp_assigner(
        self, timestamp_assigner: TimestampAssigner | Callable[[Any, int], int]
    ) -> WatermarkStrategy:
        """Timestamps by this assigner or function of (value, timestamp so far), not by the source."""
        if not isinstance(timestamp_assigner, TimestampAssigner):
            if not callable(timestamp_assigner) or isinstance(timestamp_assigner, type):
                raise TypeError(
                    f"with_timestamp_assigner() takes a TimestampAssigner or a function, not {timestamp_assigner!r:.200}"
                )
            timestamp_assigner = _FunctionAssigner(timestamp_assigner)
        return replace(self, timestamp_assigner=timestamp_assigner)

    def with_idleness(self, idle_timeout: Duration) -> WatermarkStrategy:
        """Let watermarks go on without an input that had no records for this long."""
        return replace(self, idleness_ms=_millis("the idle timeout", idle_timeout, 1))

    def with_watermark_alignment(
        self, watermark_group: str, max_allowed_watermark_drift: Duration, update_interval: Duration | None = None
    ) -> WatermarkStrategy:
        """Do not read a source while it is further than the drift ahead of others of its group that are not idle.

        For strategies given to `from_source`; where timestamps are assigned later on nobody knows which source to hold
        back, and it has no effect.

        :param update_interval: how often this is looked at, by default every second; also how long an epoch may take.
        """
        return replace(
            self,
            alignment_group=watermark_group,
            alignment_drift_ms=_millis("the maximum watermark drift", max_allowed_watermark_drift, 0),
            alignment_interval_ms=1000 if update_interval is None else _millis("the interval", update_interval, 1),
        )


class _FunctionAssigner(TimestampAssigner):
    """A plain function as a TimestampAssigner."""

    def __init__(self, function: Callable[[Any, int], int]) -> None:
        self._function = function

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return self._function(value, record_timestamp)


def _millis(what: str, duration: Duration, least: int) -> int:
    if not isinstance(duration, Duration):
        raise TypeError(f"{what} must be a Duration such as Duration.of_seconds(5), not {duration!r}")
    if duration.to_millis() < least:
        raise ValueError(f"{what} must be at least {least} ms, not {duration}")
    return duration.to_millis()
