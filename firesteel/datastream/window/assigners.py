"""What assigns records to windows: the interfaces."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from firesteel.common.serializer import TypeSerializer
from firesteel.datastream.window.trigger import Trigger

if TYPE_CHECKING:
    from firesteel.datastream.runtime_context import RuntimeContext

T = TypeVar("T")
W = TypeVar("W")
W2 = TypeVar("W2")


class WindowAssigner(ABC, Generic[T, W]):
    """Says which windows a record belongs to: none, one or several."""

    class WindowAssignerContext(ABC):
        """What an assigner can ask for."""

        @abstractmethod
        def get_current_processing_time(self) -> int: ...

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """Where the operator runs; its state is that of the record's key, whatever the window."""

    @abstractmethod
    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[W]:
        """The windows of a record.

        :param timestamp: the record's; the smallest 64-bit integer when it has none, which only happens to assigners that
            do not go by event time.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger where none is given."""

    def get_window_serializer(self) -> TypeSerializer[Any] | None:
        """Not asked for: windows are pickled."""
        return None

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by event time, and not by processing time."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows grow together when a record connects them, as sessions do."""

    class MergeCallback(ABC, Generic[W2]):
        """Is told what becomes one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[W2], merge_result: W2) -> None:
            """These windows are this one from now on."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Look for windows that become one, among all that a key has."""
