"""Records made from numbers by a function, as fast as told: for tests, examples and load."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import (
    CHUNK,
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.connectors.splits import cut
from firesteel.connectors.user_code import FunctionContext, user_error
from firesteel.errors import ConfigurationError, RestoreError

Clock = Callable[[], float]


class GeneratorFunction(ABC):
    """Makes the record of a number. Must give the same record for the same number, or recovery is not exactly once."""

    def open(self, reader_context: Any) -> None:  # noqa: B027  an optional hook
        """Called once in the slot, before the first number."""

    @abstractmethod
    def map(self, value: int) -> Any: ...

    def close(self) -> None:  # noqa: B027  an optional hook
        """Called once in the slot, after the last number."""


class RateLimiter(ABC):
    """How much may be planned, counted from the start of the job."""

    @abstractmethod
    def allowed(self) -> int | None:
        """How many more records now; None for any number."""

    def planned(self, records: int) -> None:  # noqa: B027  an optional hook
        """So many have been planned."""

    def checkpointed(self) -> None:  # noqa: B027  an optional hook
        """A checkpoint begins."""


class RateLimiterStrategy:
    """A limit for the source as a whole, not for each subtask."""

    def __init__(self, create: Callable[[], RateLimiter]) -> None:
        self.create = create

    @staticmethod
    def no_op() -> RateLimiterStrategy:
        return RateLimiterStrategy(_Unlimited)

    @staticmethod
    def per_second(records_per_second: float, clock: Clock = time.monotonic) -> RateLimiterStrategy:
        """An idle time is caught up on; a restart begins to count again."""
        if records_per_second <= 0:
            raise ConfigurationError(f"records_per_second must be above 0, but is {records_per_second}")
        return RateLimiterStrategy(lambda: _PerSecond(records_per_second, clock))

    @staticmethod
    def per_checkpoint(records_per_checkpoint: int) -> RateLimiterStrategy:
        """Between two checkpoints no more than this. Without checkpointing the source stops there."""
        if records_per_checkpoint < 1:
            raise ConfigurationError(f"records_per_checkpoint must be at least 1, but is {records_per_checkpoint}")
        return RateLimiterStrategy(lambda: _PerCheckpoint(records_per_checkpoint))

    def __getstate__(self) -> dict[str, Any]:
        return {}  # limits are the driver's


class _Unlimited(RateLimiter):
    def allowed(self) -> int | None:
        return None


class _PerSecond(RateLimiter):
    def __init__(self, rate: float, clock: Clock) -> None:
        self._rate, self._clock = rate, clock
        self._started: float | None = None
        self._planned = 0

    def allowed(self) -> int:
        now = self._clock()
        if self._started is None:
            self._started = now
        return int(self._rate * (now - self._started)) - self._planned

    def planned(self, records: int) -> None:
        self._planned += records


class _PerCheckpoint(RateLimiter):
    def __init__(self, records: int) -> None:
        self._records = self._left = records

    def allowed(self) -> int:
        return self._left

    def planned(self, records: int) -> None:
        self._left -= records

    def checkpointed(self) -> None:
        self._left = self._records


class DataGeneratorSource(Source):
    """`generator_function` of the numbers from 0 to below `count`, or for ever when that is None: exactly once.

    Numbers are given out in turn, so at any time all below some number (and none much above it) have been made, by
    whatever number of subtasks.
    """

    def __init__(
        self,
        generator_function: GeneratorFunction | Callable[[int], Any],
        count: int | None = None,
        rate_limiter_strategy: RateLimiterStrategy | None = None,
        type_info: TypeInformation | None = None,
    ) -> None:
        if not isinstance(generator_function, GeneratorFunction) and not callable(generator_function):
            raise ConfigurationError(
                f"a data generator needs a GeneratorFunction or a function of a number, not {generator_function!r:.200}"
            )
        if count is not None and count < 0:
            raise ConfigurationError(f"a data generator's count is at least 0 (None: for ever), but is {count}")
        self.generator_function = generator_function
        self.count = count
        self.bounded = count is not None
        self.rate_limiter_strategy = rate_limiter_strategy or RateLimiterStrategy.no_op()
        self.type_info = type_info

    def get_produced_type(self) -> TypeInformation | None:
        return self.type_info

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return GeneratorEnumerator(self.count, self.rate_limiter_strategy.create(), context)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return GeneratorReader(self.generator_function, context)


class GeneratorEnumerator(SplitEnumerator):
    """Counts. A unit is a number; each epoch's numbers are cut evenly into one range for each subtask."""

    def __init__(self, count: int | None, limiter: RateLimiter, context: EnumeratorContext) -> None:
        self._count, self._limiter, self._context = count, limiter, context
        self._position = 0
        self._splits: list[list[str]] | None = None

    def plan(self, budget: int) -> Assignment:
        allowed = self._limiter.allowed()
        units = budget if allowed is None else min(budget, allowed)
        if self._count is not None:
            units = min(units, self._count - self._position)
        units = max(0, units)
        start, self._position = self._position, self._position + units
        self._limiter.planned(units)
        parallelism = self._context.parallelism
        ranges: list[list[Json]] = [[] for _ in range(parallelism)]
        for subtask, (first, stop) in enumerate(cut([(start, self._position)], parallelism)):
            ranges[subtask].append({"start": first, "stop": stop})
        if units:
            # those that got none because there were few have nothing that is older than what others got
            self._splits = [[""] if mine else [] for mine in ranges]
        return Assignment(ranges, units, splits=self._splits)

    def finished(self) -> bool:
        return self._position == self._count

    def snapshot(self) -> Json:
        self._limiter.checkpointed()
        return {"position": self._position, "count": self._count}

    def restore(self, state: Json) -> None:
        if self._count is not None and state["position"] > self._count:
            raise RestoreError(
                f"source {self._context.uid!r} generates {self._count} records, but the checkpoint was taken after "
                f"{state['position']}: restore with a count of at least that, or give the source another uid to start over."
            )
        self._position = state["position"]

    def progress(self) -> float | None:
        if self._count is None:
            return None
        return self._position / self._count if self._count else 1.0


class GeneratorReader(SourceReader):
    """Calls the function."""

    def __init__(self, function: GeneratorFunction | Callable[[int], Any], context: ReaderContext) -> None:
        self._function = function
        self._call: Callable[[int], Any] = function.map if isinstance(function, GeneratorFunction) else function
        if isinstance(function, GeneratorFunction):
            function.open(FunctionContext(context, "generator function"))

    def read(self, planned: Json) -> Iterator[list[Any]]:
        stop = planned["stop"]
        for start in range(planned["start"], stop, CHUNK):
            numbers = iter(range(start, min(start + CHUNK, stop)))
            try:
                records = list(map(self._call, numbers))
            except Exception as error:
                failed = next(numbers, min(start + CHUNK, stop)) - 1
                raise user_error(error, f"in the generator function, for the number {failed}") from error
            yield records

    def close(self) -> None:
        if isinstance(self._function, GeneratorFunction):
            self._function.close()
