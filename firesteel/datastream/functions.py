"""What users implement. A plain function works wherever a function class does; the class adds open() and close()."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from firesteel.datastream.broadcast_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedStateFunction,
)
from firesteel.datastream.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from firesteel.datastream.process_functions import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from firesteel.datastream.runtime_context import Function, KeyedStateStore, RuntimeContext
from firesteel.datastream.timerservice import TimerService
from firesteel.datastream.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateFunction",
    "KeyedStateStore",
    "MapFunction",
    "NullByteKeySelector",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "TimerService",
    "WindowFunction",
]


class MapFunction(Function):
    """One output for each input."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """One output for one input."""


class CoMapFunction(Function):
    """A map over two connected streams; a result of None is no output."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """At most one output for an input of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """At most one output for an input of the second stream."""


class FlatMapFunction(Function):
    """Any number of outputs for each input."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Any number of outputs for one input: yield them, or return an iterable or None."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Any number of outputs for an input of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Any number of outputs for an input of the second stream."""


class FilterFunction(Function):
    """Decides which inputs are kept."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether the input is kept."""


class ReduceFunction(Function):
    """Combines two values into one of the same kind."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the reduction so far with a new input."""


class AggregateFunction(Function):
    """Folds inputs into an accumulator, whose type may differ from the inputs' and from the result's."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """The accumulator of no inputs."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with one more input; it may be the given one, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result so far. Must leave the accumulator as it is."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """The accumulator of the inputs of both; it may be either one, changed."""


class KeySelector(Function):
    """Gives the key of a record."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of an input. Must give the same key for the same input, always."""


class NullByteKeySelector(KeySelector):
    """One key for all inputs: keyed functions over a stream that has no key."""

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function):
    """Chooses the subtask that a record goes to."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """The subtask that gets the record of that key: from 0 to below `num_partitions`."""


class SourceFunction(Function):
    """A source that pushes records itself.

    It runs once and knows nothing of checkpoints: after a failure it starts over. Sources that are read again from where
    they were implement `Source`.
    """

    class SourceContext(ABC):
        """Where the records go."""

        @abstractmethod
        def collect(self, element: Any) -> None:
            """Emit a record."""

        @abstractmethod
        def collect_with_timestamp(self, element: Any, timestamp: int) -> None:
            """Emit a record with its event time in milliseconds."""

        @abstractmethod
        def emit_watermark(self, mark: int) -> None:
            """Declare that no record with a timestamp up to this one will follow."""

        @abstractmethod
        def mark_as_temporarily_idle(self) -> None:
            """Let watermarks go on without this source until its next record."""

    @abstractmethod
    def run(self, ctx: SourceFunction.SourceContext) -> None:
        """Emit records until there are no more, or until `cancel` was called."""

    @abstractmethod
    def cancel(self) -> None:
        """Make `run` return soon. Called from another thread."""


class SinkFunction(Function):
    """A sink without transactions: after a failure it may get records again."""

    class Context(ABC):
        """What is known about the record."""

        @abstractmethod
        def current_processing_time(self) -> int: ...

        @abstractmethod
        def current_watermark(self) -> int: ...

        @abstractmethod
        def timestamp(self) -> int | None:
            """The record's timestamp in milliseconds, None when it has none."""

    @abstractmethod
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:
        """Take one record."""
