"""By which time windows go: the records' timestamps, or the machine's clock."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from firesteel.common.serializer import TypeSerializer
from firesteel.datastream.window.assigners import WindowAssigner
from firesteel.datastream.window.triggers import EventTimeTrigger, ProcessingTimeTrigger
from firesteel.datastream.window.windows import TimeWindow, TimeWindowSerializer


class TimeWindows(WindowAssigner[Any, TimeWindow]):
    """Windows from one time to another."""

    @abstractmethod
    def _time(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        """The time that counts."""

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class ByEventTime(TimeWindows):
    """Mixed in first, before what says how windows are cut."""

    def _time(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return timestamp

    def get_default_trigger(self, env: Any) -> EventTimeTrigger:
        return EventTimeTrigger()

    def is_event_time(self) -> bool:
        return True


class ByProcessingTime(TimeWindows):
    """The same by the clock."""

    def _time(self, timestamp: int, context: WindowAssigner.WindowAssignerContext) -> int:
        return context.get_current_processing_time()

    def get_default_trigger(self, env: Any) -> ProcessingTimeTrigger:
        return ProcessingTimeTrigger()

    def is_event_time(self) -> bool:
        return False
