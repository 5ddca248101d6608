"""Functions over pairs of records that belong together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

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
