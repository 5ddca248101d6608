"""What a person sees of a running job: one line now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter, deque
from typing import TextIO

from firesteel.coordinator.engine import EpochResult
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.graph.plan import JobPlan

_EVERY_S = 5.0
_RESTORING_S = 1.0
_RATE_S = 10.0


class Progress:
    """Counts records and prints a line every few seconds, to a terminal or when asked to."""

    def __init__(self, plan: JobPlan, name: str, shown: bool | None, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty() if shown is None else shown
        self._name = name
        self._sources = [operator.uid for operator in plan.sources()]
        self._lock = threading.Lock()
        self._started = self._last_shown = time.monotonic()
        self._last_records = 0
        self.records: Counter[str] = Counter()  # operator uid -> records out
        self.records_in: Counter[str] = Counter()
        self._samples: deque[tuple[float, Counter[str]]] = deque([(self._started, Counter())])  # of records, for rates
        self.epochs = 0
        self.checkpoints = 0
        self.last_checkpoint: CheckpointMetadata | None = None
        self.slots_rss: dict[int, int] = {}
        self._to_restore: CheckpointMetadata | None = None
        self._bytes_restored = 0

    def restore(self, metadata: CheckpointMetadata) -> None:
        """Slots begin to read this checkpoint's state."""
        with self._lock:
            self._to_restore, self._bytes_restored = metadata, 0
            self._last_shown = time.monotonic()

    def restoring(self, size: int) -> None:
        """A slot has read so much of a state file."""
        with self._lock:
            self._bytes_restored += size
            if self._shown and self._to_restore and time.monotonic() - self._last_shown >= _RESTORING_S:
                self._last_shown = time.monotonic()
                done, of = self._bytes_restored / 1e6, self._to_restore.size() / 1e6
                self._print(f"restoring checkpoint {self._to_restore.checkpoint}: {done:,.1f} of {of:,.1f} MB")

    def restored(self, seconds: float) -> None:
        """All slots have their state."""
        with self._lock:
            if self._shown and self._to_restore:
                size = self._bytes_restored / 1e6
                number = self._to_restore.checkpoint
                self._print(f"restored checkpoint {number}: {size:,.1f} MB in {seconds:.1f} s, slots' start included")
            self._last_shown = time.monotonic()

    def epoch(self, number: int, seconds: float, result: EpochResult, base: int | None, part: float | None) -> None:
        with self._lock:
            self.epochs += 1
            for report in result.reports:
                for uid, (taken, made) in report["records"].items():
                    self.records[uid] += made
                    self.records_in[uid] += taken
            self._sample()
            if self._shown and time.monotonic() - self._last_shown >= _EVERY_S:
                self._show(seconds, part)

    def _sample(self) -> None:
        now, samples = time.monotonic(), self._samples
        if now - samples[-1][0] >= 1:
            samples.append((now, self.records.copy()))
        while len(samples) > 2 and samples[1][0] <= now - _RATE_S:
            samples.popleft()

    def counts(self) -> tuple[dict[str, int], dict[str, int], dict[str, float]]:
        """By operator uid: records in, records out, and records out per second of late."""
        with self._lock:
            now = time.monotonic()
            since, before = next((one for one in self._samples if one[0] > now - _RATE_S), self._samples[-1])
            taken = max(now - since, 1.0)
            rates = {uid: (count - before[uid]) / taken for uid, count in self.records.items()}
            return dict(self.records_in), dict(self.records), rates

    def read(self) -> int:
        """Records read from all sources, repeats after a rollback included."""
        return sum(self.records[uid] for uid in self._sources)

    def checkpoint(self, metadata: CheckpointMetadata) -> None:
        with self._lock:
            self.checkpoints += 1
            self.last_checkpoint = metadata

    def savepointing(self, path: str, read: int, of: int) -> None:
        """Slots have read so many bytes of the state that goes into a savepoint."""
        with self._lock:
            if self._shown and time.monotonic() - self._last_shown >= _RESTORING_S:
                self._last_shown = time.monotonic()
                self._print(f"savepoint {path}: {read / 1e6:,.1f} of {of / 1e6:,.1f} MB")

    def savepoint(self, path: str, size: int, seconds: float) -> None:
        """A savepoint is there."""
        with self._lock:
            if self._shown:
                self._print(f"savepoint {path}: {size / 1e6:,.1f} MB in {seconds:.1f} s")

    def slot_memory(self, slot: int, rss: int) -> None:
        self.slots_rss[slot] = rss

    def _show(self, seconds: float, part: float | None) -> None:
        now, records = time.monotonic(), self.read()
        rate = (records - self._last_records) / (now - self._last_shown)
        self._last_shown, self._last_records = now, records
        words = [f"{records:,} records", f"{rate:,.0f}/s", f"epoch {self.epochs} in {seconds:.2f} s"]
        if part is not None:
            words.insert(0, f"{part:.0%}")
        if self.last_checkpoint is not None:
            size = self.last_checkpoint.size() / 1e6
            words.append(f"checkpoint {self.last_checkpoint.checkpoint} ({size:,.1f} MB)")
        if self.slots_rss:
            words.append(f"slots {sum(self.slots_rss.values()) / 1e6:,.0f} MB")
        self._print("  ".join(words))

    def close(self) -> None:
        """The last line, when the job has ended."""
        if self._shown and self.epochs:
            took = time.monotonic() - self._started
            self._print(
                f"{self.read():,} records in {took:.1f} s, {self.epochs} epochs, {self.checkpoints} checkpoints"
            )

    def _print(self, text: str) -> None:
        self._stream.write(f"[{self._name}] {text}\n")
        self._stream.flush()
