"""What a savepoint and a restore from it take: `python -m bench.savepoints KEYS BACKEND RATE SECONDS`

Each of KEYS keys is counted once, at full speed, and then again and again, RATE of them a second, in the order of their
numbers. After SECONDS of that a savepoint is asked for, and the job goes on while it is written. Two new jobs start from it,
with as many slots and with one more, and compare every key's count with what it was at the savepoint's barrier.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bench.checkpoints import Count
from bench.figures import percentile
from bench.paced import Numbers
from bench.watch import PARALLELISM, Watch, environment
from firesteel.client import RunningJob
from firesteel.common import Types
from firesteel.connectors.base import (
    Assignment,
    EnumeratorContext,
    Json,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from firesteel.coordinator.completed import locate
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, ValueStateDescriptor
from firesteel.graph.settings import StartSettings
from firesteel.state import list_states

NAME = "savepoints"


@dataclass(frozen=True)
class Rounds(Source):
    """The numbers of all keys, round after round: the first one as fast as it is taken, then `rate` a second."""

    keys: int
    rate: int

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Rounds(self, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self.keys)


@dataclass(frozen=True)
class OneRound(Source):
    """The numbers of all keys once, wherever the source stood that had its uid before."""

    keys: int

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _OneRound(self.keys, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self.keys)


class _Rounds(Numbers):
    def __init__(self, source: Rounds, parallelism: int) -> None:
        super().__init__(sys.maxsize, parallelism)
        self._source = source
        self._origin: float | None = None

    def plan(self, budget: int) -> Assignment:
        position, keys = self.snapshot(), self._source.keys
        if position < keys:
            return self._take(min(budget, keys - position))
        self._origin = self._origin or time.monotonic()
        due = keys + int((time.monotonic() - self._origin) * self._source.rate)
        return self._take(min(budget, due - position))


class _OneRound(Numbers):
    def plan(self, budget: int) -> Assignment:
        return self._take(budget)

    def restore(self, state: Json) -> None:
        """It starts over."""


class _Reader(SourceReader):
    def __init__(self, keys: int) -> None:
        self._keys = keys

    def read(self, planned: Json) -> Iterator[list[Any]]:
        yield [number % self._keys for number in range(planned["start"], planned["stop"])]


class Compare(KeyedProcessFunction):
    """Fails the job if a key's count is not the one that it had when `read` numbers had been read."""

    def __init__(self, keys: int, read: int) -> None:
        self._rounds, self._begun = divmod(read, keys)

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: int, ctx: Any) -> None:
        count, expected = self.count.value(), self._rounds + (value < self._begun)
        if count != expected:
            raise ValueError(f"key {value} was counted {count} times after the restore, and {expected} times before")


class SavepointWatch(Watch):
    """Asks for a savepoint when the state has been there for a while, and cancels the job when it has it."""

    def __init__(self, env: StreamExecutionEnvironment, keys: int, before_s: float) -> None:
        self._keys, self._before_s = keys, before_s
        self.made = self.asked = self.published = 0.0
        self.path = ""
        super().__init__(env, NAME)

    def run(self, client: RunningJob) -> None:
        self._wait(client, self._is_made)
        self.made = time.monotonic()
        self._wait(client, lambda: time.monotonic() >= self.made + self._before_s)
        self.asked = time.monotonic()
        self.path = client.trigger_savepoint(tempfile.mkdtemp()).result()
        self.published = time.monotonic()
        client.cancel().result()

    def _wait(self, client: RunningJob, condition: Callable[[], bool]) -> None:
        while not condition():
            if client.get_job_execution_result().done():
                client.get_job_execution_result().result()
                sys.exit("the job has ended before its savepoint")
            time.sleep(0.05)

    def _is_made(self) -> bool:
        last = self.last_checkpoint
        return last is not None and last.positions["numbers"] >= self._keys

    def epoch_p99(self, after: float, until: float) -> float:
        """Of epochs that ended in that time."""
        return percentile([took for took, end in zip(self.seconds, self.ends, strict=True) if after < end <= until], 99)


def run(keys: int, backend: str, rate: int, before_s: float) -> dict[str, Any]:
    watch = SavepointWatch(_program(backend, Rounds(keys, rate), Count()), keys, before_s)
    metadata = locate(watch.path).metadata
    entries = {state.name: state.entries for state in list_states(watch.path)}
    if entries != {"count": keys}:
        sys.exit(f"the savepoint holds {entries} instead of the counts of {keys} keys")
    answer = {
        "savepoint_s": watch.published - watch.asked,
        "size": metadata.size(),
        "rss": max(watch.rss.values()),
        "epoch_p99_before": watch.epoch_p99(watch.made, watch.asked),
        "epoch_p99": watch.epoch_p99(watch.asked, watch.published),
    }
    for slots in (PARALLELISM, PARALLELISM + 1):
        again = _restored(keys, backend, watch.path, metadata.positions["numbers"], slots)
        answer |= {f"restore_{slots}_s": again.restore_s, f"restore_{slots}_rss": max(again.rss.values())}
    return answer


def _restored(keys: int, backend: str, path: str, read: int, slots: int) -> Watch:
    env = _program(backend, OneRound(keys), Compare(keys, read), slots)
    env.start = StartSettings(path)
    watch = Watch(env, f"{NAME}, again")
    if watch.counts["count"][0] != keys or not watch.restore_s:
        sys.exit(f"{watch.counts['count'][0]} of {keys} keys were compared, restored in {watch.restore_s} s")
    return watch


def _program(
    backend: str, source: Source, function: KeyedProcessFunction, slots: int = PARALLELISM
) -> StreamExecutionEnvironment:
    env = environment(progress=True, backend=backend).set_parallelism(slots)
    env.set_spark_option("spark.master", f"local[{PARALLELISM + 1}]")  # one Spark for all of them: none starts it anew
    numbers = env.from_source(source, None, "numbers").uid("numbers")
    numbers.key_by(lambda key: key).process(function).uid("count").add_sink(lambda value: None)
    return env


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
