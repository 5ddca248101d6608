"""State that is larger than the memory it may take: `python -m bench.large_state KEYS CHANGES`

First every key is counted once, then CHANGES random ones once more. Every count is checked.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.paced import Numbers
from bench.watch import Watch, environment
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
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment, ValueStateDescriptor

_STEP = 7_368_787  # a prime: number times this, modulo the number of keys, looks random and never repeats


@dataclass(frozen=True)
class KeysTwice(Source):
    """All keys in their order, and then some of them in another."""

    keys: int
    changes: int

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        return _Enumerator(self.keys + self.changes, context.parallelism)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _Reader(self.keys)


class _Enumerator(Numbers):
    def plan(self, budget: int) -> Assignment:
        return self._take(budget)


class _Reader(SourceReader):
    def __init__(self, keys: int) -> None:
        self._keys = keys

    def read(self, planned: Json) -> Iterator[list[Any]]:
        keys = self._keys
        for start in range(planned["start"], planned["stop"], 8192):
            numbers = range(start, min(start + 8192, planned["stop"]))
            yield [f"sensor_{n if n < keys else n * _STEP % keys}" for n in numbers]


class CountOnceOrTwice(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: str, ctx: Any) -> Iterator[int]:
        count, name = self.count.value() or (0, value)
        assert name == value and count < 2
        self.count.update((count + 1, value))
        if count:
            yield count + 1


class LargeWatch(Watch):
    """Also notes what checkpoints wrote once the state was made."""

    def __init__(self, env: StreamExecutionEnvironment, keys: int) -> None:
        self._keys, self._seen = keys, set[str]()
        self.state = self.written = 0
        super().__init__(env, "large state")

    def checkpoint(self, metadata: CheckpointMetadata) -> None:
        super().checkpoint(metadata)
        new = {h["file"]: h["size"] for chain in metadata.state for h in chain if h["file"] not in self._seen}
        if self.state:
            self.written += sum(new.values())
        if self.reads and self.reads[-1] >= self._keys:
            self.state = metadata.size()
        self._seen.update(new)

    def made(self) -> int:
        """The epoch that made the last of the state."""
        return next(i for i, read in enumerate(self.reads) if read >= self._keys)


def run(source: KeysTwice) -> dict[str, Any]:
    env = environment(directory=tempfile.mkdtemp(), backend="rocksdb")
    keys = env.from_source(source, None, "keys").uid("keys")
    keys.key_by(lambda key: key).process(CountOnceOrTwice()).uid("count").add_sink(lambda value: None)
    watch = LargeWatch(env, source.keys)
    received, twice = watch.counts["count"]
    if (received, twice) != (source.keys + source.changes, source.changes):
        sys.exit(f"{received} records, {twice} of keys that were there, instead of {source}")
    made = watch.made()
    return {
        "new_per_s": watch.reads[made] / (watch.ends[made] - watch.first_epoch),
        "changed_per_s": (watch.reads[-1] - watch.reads[made]) / max(1e-9, watch.ended - watch.ends[made]),
        "rss": max(watch.rss.values(), default=0),
        "state": watch.state,
        "bytes_per_key": watch.written / source.changes,
    }


if __name__ == "__main__":
    print(json.dumps(run(KeysTwice(*map(int, sys.argv[1:3])))))
