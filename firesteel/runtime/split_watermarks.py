"""How far event time has come in each split of a subtask's input, and so in all of them together.

A split has a watermark of its own, because it is the splits whose records are in order, and not what a subtask makes of
them by reading now from one and now from another. The watermark of them all is the minimum over those that are open and not
idle. When none is left, what has been read was everything for now, and event time may come as far as any of them got.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from firesteel.common.watermark_strategy import WatermarkOutput, WatermarkStrategy
from firesteel.runtime.flow import MIN_WATERMARK, Values
from firesteel.state.operator import OperatorListTable

WHOLE = ""
"""The split of a subtask whose source names none. It never moves to another subtask."""


class BoundedGenerator:
    """The watermark trails the highest timestamp by a fixed bound."""

    punctuated = idle = False

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self.highest: int | None = None

    @property
    def watermark(self) -> int:
        return MIN_WATERMARK if self.highest is None else self.highest - self._bound - 1

    def observe(self, values: Values, times: list[Any], start: int, end: int) -> int:
        """Look at these records. Gives how far it got: it may want its watermark emitted sooner."""
        highest = max(times[start:end])
        if self.highest is None or highest > self.highest:
            self.highest = highest
        return end

    def periodic(self) -> None:
        """The watermark is always up to date."""


class CustomGenerator(WatermarkOutput):
    """A user's WatermarkGenerator."""

    def __init__(self, strategy: WatermarkStrategy) -> None:
        supplier = strategy.generator_supplier
        assert supplier is not None
        self._generator = supplier() if callable(supplier) else supplier
        self.highest: int | None = None
        self.punctuated = False  # something is to be said before the next record
        self.idle = False

    @property
    def watermark(self) -> int:
        return MIN_WATERMARK if self.highest is None else self.highest

    def observe(self, values: Values, times: list[Any], start: int, end: int) -> int:
        """Look at these records, up to the first after which the user emits a watermark or changes idleness."""
        self.punctuated = False
        for index in range(start, end):
            self._generator.on_event(values[index], times[index], self)
            if self.punctuated:
                return index + 1
        return end

    def periodic(self) -> None:
        self._generator.on_periodic_emit(self)

    def emit_watermark(self, watermark: int) -> None:
        self.mark_active()
        if watermark > self.watermark:
            self.highest = int(watermark)
            self.punctuated = True

    def mark_idle(self) -> None:
        self._set_idle(True)

    def mark_active(self) -> None:
        self._set_idle(False)

    def _set_idle(self, idle: bool) -> None:
        if idle != self.idle:
            self.idle, self.punctuated = idle, True


class SplitWatermark:
    """One split.

    :ivar silent: it had no record for longer than the strategy waits.
    """

    __slots__ = ("generator", "last_record", "silent")

    def __init__(self, generator: BoundedGenerator | CustomGenerator, last_record: int) -> None:
        self.generator = generator
        self.last_record = last_record
        self.silent = False

    @property
    def idle(self) -> bool:
        """Whether event time goes on without it."""
        return self.silent or self.generator.idle


class SplitWatermarks:
    """The open splits of one subtask.

    :param shared: where the state of splits is kept for whichever subtask reads them after a restore. None: there are none
        but the whole.
    """

    def __init__(
        self, strategy: WatermarkStrategy, now: Callable[[], int], shared: OperatorListTable | None, first: bool
    ) -> None:
        self._strategy, self._now, self._shared, self._first = strategy, now, shared, first
        self._started = now()
        self._finished = MIN_WATERMARK  # as far as those got that are not open any more
        self._restored: dict[str, tuple[int | None, bool]] = {}  # of splits that nobody here has opened yet
        for name, highest, idle in shared.get() if shared is not None else ():
            known = self._restored.get(name)
            if known is None or known[0] is None or (highest is not None and highest >= known[0]):
                self._restored[name] = highest, idle
        self._splits = {WHOLE: self._open(WHOLE)}
        self.current = self._splits[WHOLE]

    def _open(self, name: str) -> SplitWatermark:
        strategy = self._strategy
        bound = strategy.out_of_orderness_ms
        generator = CustomGenerator(strategy) if strategy.kind == "custom" else BoundedGenerator(bound)
        # a restored one has been silent since the restart, whenever somebody says that it is here
        split = SplitWatermark(generator, self._started if name in self._restored else self._now())
        generator.highest, split.silent = self._restored.pop(name, (None, False))
        return split

    def keep(self, names: Iterable[str]) -> None:
        """These are open from now on, and no others."""
        before = self._splits
        self._splits = {name: before.pop(name) if name in before else self._open(name) for name in dict.fromkeys(names)}
        for split in before.values():
            self._finished = max(self._finished, split.generator.watermark)

    def expect(self, names: Iterable[str]) -> None:
        """Wait for these, which are open."""
        now = self._now()
        for name in names:
            split = self._splits[name]
            split.silent, split.last_record = False, now

    def read_from(self, name: str) -> None:
        """The next records are of this split, which is open."""
        self.current = self._splits[name]

    @property
    def watermark(self) -> int:
        splits = self._splits.values()
        waited_for = [split.generator.watermark for split in splits if not split.idle]
        if waited_for:
            return min(waited_for)
        return max([self._finished, *(split.generator.watermark for split in splits)])

    @property
    def idle(self) -> bool:
        """Whether there is nothing to wait for."""
        return all(split.idle for split in self._splits.values())

    def periodic(self) -> None:
        for split in self._splits.values():
            split.generator.periodic()

    def find_idle(self, reading: Collection[str] = ()) -> bool:
        """Leave out those that had no records for long, apart from those that are being read. Says whether there are any."""
        timeout = self._strategy.idleness_ms
        if timeout is None:
            return False
        latest = self._now() - timeout
        found = [
            split
            for name, split in self._splits.items()
            if not split.idle and name not in reading and split.last_record <= latest
        ]
        for split in found:
            split.silent = True
        return bool(found)

    def not_idle_yet(self) -> None:
        """Begin anew to wait for records."""
        now = self._now()
        for split in self._splits.values():
            split.last_record = now

    def wake(self) -> int | None:
        """When a split may have fallen idle."""
        timeout = self._strategy.idleness_ms
        if timeout is None:
            return None
        return min((split.last_record + timeout for split in self._splits.values() if not split.idle), default=None)

    # ---- as state

    def snapshot(self) -> dict[str, Any]:
        """What belongs to the subtask. What belongs to its splits goes into the shared state."""
        if self._shared is not None:
            # those that wait to be opened by somebody must not be lost meanwhile; one subtask speaks for all
            saved = dict(self._restored) if self._first else {}
            saved.update({n: (s.generator.highest, s.idle) for n, s in self._splits.items() if n != WHOLE})
            entries = [(name, *state) for name, state in saved.items()]
            if entries != list(self._shared.get()):
                self._shared.update(entries)
        whole = self._splits.get(WHOLE)
        mine: dict[str, Any] = {}
        if whole is not None and (whole.generator.highest is not None or whole.idle):
            mine["highest"], mine["idle"] = whole.generator.highest, whole.idle
        if self._finished > MIN_WATERMARK:
            mine["finished"] = self._finished
        return mine

    def restore(self, saved: dict[str, Any]) -> None:
        self._finished = saved.get("finished", MIN_WATERMARK)
        whole = self._splits[WHOLE]
        whole.generator.highest, whole.silent = saved.get("highest"), saved.get("idle", False)
