"""Functions over pairs of records that belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from firesteel.datastream.runtime_context import Function


class ProcessJoinFunction(Function):
    """What becomes of each pair that an interval join finds. It may have keyed state; it has no timers."""

    class Context(ABC):
        """The times of a pair, in milliseconds. Valid only during the call it is given to."""

        @abstractmethod
        def get_left_timestamp(self) -> int: ...

        @abstractmethod
        def get_right_timestamp(self) -> int: ...

        @abstractmethod
        def get_timestamp(self) -> int:
            """The timestamp of the outputs: the later one of both."""

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterable[Any] | None:
        """Yield any number of outputs for a pair; `yield output_tag, value` goes to a side output."""


class JoinFunction(Function):
    """What becomes of each pair of records that a window join finds: one output."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The output for a pair."""


class FlatJoinFunction(Function):
    """What becomes of each pair of records that a window join finds: any number of outputs."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Iterable[Any] | None:
        """Yield any number of outputs for a pair; `yield output_tag, value` goes to a side output."""


class CoGroupFunction(Function):
    """What becomes of the records that two streams have for one key and window."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any] | None:
        """Yield any number of outputs. One of both may be empty, so this can be an outer join."""


class TaggedUnion(NamedTuple):
    """A record of either of two streams, as triggers, evictors and late side outputs of window joins see it."""

    tag: int  # 0: of the first stream
    value: Any

    def is_one(self) -> bool:
        """Whether it is of the first stream."""
        return self.tag == 0

    def is_two(self) -> bool:
        """Whether it is of the second stream."""
        return self.tag == 1

    def get_one(self) -> Any:
        """The record, if it is of the first stream."""
        return self.value if self.tag == 0 else None

    def get_two(self) -> Any:
        """The record, if it is of the second stream."""
        return self.value if self.tag == 1 else None
