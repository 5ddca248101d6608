"""The part `backends`: state in memory against state in RocksDB."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure
from bench.part import Part
from bench.programs import run


class Backends(Part):
    """The workload of `throughput` with either backend, and state that is larger than the memory it may take."""

    name = "backends"

    def prepare(self) -> None:
        events = self.size.events.make()
        events.expected()
        # it checks every single alert
        run("bench.keyed", events.records, events.keys, events.files, "in-order", "rocksdb")

    def repeat(self, repetition: int) -> None:
        events = self.size.events
        for backend in ("hashmap", "rocksdb"):
            self.keep(backend, run("bench.keyed", events.records, events.keys, events.files, backend))
        if repetition == 0:
            self.keep("large", run("bench.large_state", self.size.large_keys, self.size.large_changes))

    def figures(self) -> Iterator[Figure]:
        hashmap = self.median("hashmap: keyed updates", "hashmap", "per_s", "records/s")
        rocksdb = self.median("rocksdb: keyed updates", "rocksdb", "per_s", "records/s")
        yield from (hashmap, rocksdb)
        yield Figure("rocksdb / hashmap", rocksdb.value / hashmap.value, "", 0.3)
        yield self.median("large state: new keys", "large", "new_per_s", "records/s")
        yield self.median("large state: random updates", "large", "changed_per_s", "records/s")
        rss = self.samples("large", "rss")
        yield Figure("large state: memory per slot, highest", max(rss) / 1e6, "MB", 1000, False)
        yield self.median("large state: size of a checkpoint", "large", "state", "MB", 1e-6)
        yield self.median("large state: written for a changed key", "large", "bytes_per_key", "bytes")

    def notes(self) -> Iterator[str]:
        size = self.size
        yield (
            f"Large state: a count for each of {size.large_keys:,} keys in 2 slots, then {size.large_changes:,} updates of "
            "random keys, most of which are not in memory; a checkpoint every second; RocksDB with its default of 256 MB for "
            "each slot, one run. Written for a changed key: new bytes of the checkpoints since the state was made, merging "
            "included."
        )
