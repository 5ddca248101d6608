"""Timestamps and watermarks by a WatermarkStrategy.

A watermark is emitted after every `WATERMARK_RECORDS` records and whenever the source has nothing more to give for now.
So where it falls among the records does not depend on where epochs are cut: the same input fires the same timers between
the same records. How many records are left until the next one is part of the snapshot.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from itertools import repeat
from typing import Any

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.errors import UserCodeError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.failures import last_of, on_record
from firesteel.runtime.flow import MAX_WATERMARK, MIN_WATERMARK, Emitter, Times, Values
from firesteel.runtime.split_watermarks import SplitWatermarks
from firesteel.state.operator import OperatorListTable

WATERMARK_RECORDS = 4096


class Timestamper:
    """Gives records their timestamps and follows them with watermarks. Watermarks from further up end here.

    :param shared: for a source, the state in which splits find their watermarks again wherever they are read.
    :param first: whether this is the first subtask.
    """

    def __init__(
        self,
        operator: PlannedOperator,
        strategy: WatermarkStrategy,
        sources: frozenset[str],
        emitter: Emitter,
        now: Callable[[], int],
        shared: OperatorListTable | None = None,
        first: bool = True,
    ) -> None:
        self._operator, self._strategy, self._emitter, self._now = operator, strategy, emitter, now
        self.sources = sources  # uids of where its records come from
        self._splits = SplitWatermarks(strategy, now, shared, first)
        self._silent = strategy.kind == "none"
        self._warned = False
        self._until_emit = WATERMARK_RECORDS
        self._starved = False  # nothing comes from further up
        self._is_idle = False
        self.watermark = MIN_WATERMARK
        """The one that was emitted last."""

    # ---- splits

    def keep(self, splits: Iterable[str]) -> None:
        """Event time waits for these splits from now on, and for no others."""
        self._splits.keep(splits)
        self._update_idle()

    def expect(self, splits: Collection[str]) -> None:
        """Records of these splits are about to come: event time waits for them, also if they were silent before."""
        self._splits.expect(splits)
        self._starved = False
        self._update_idle()

    def read_from(self, split: str) -> None:
        """The next records are of this split."""
        self._splits.read_from(split)

    def was_read(self, splits: Collection[str]) -> None:
        """These splits had their turn: the others may have been silent for long."""
        if self._splits.find_idle(splits):
            self.emit(periodic=False)

    # ---- records

    def push(self, values: Values, times: Times) -> None:
        split = self._splits.current
        split.last_record = self._now()
        if self._is_idle or split.idle:
            split.silent = self._starved = False
            self._update_idle()
        if times is None and self._strategy.timestamp_assigner is None and self._strategy.kind != "custom":
            self._pass_on(values)
            return
        stamps = self._extract(values, times)
        if self._silent:
            self._emitter.push(values, stamps)
            return
        generator = split.generator
        done = 0
        while done < len(values):
            end = min(len(values), done + self._until_emit)
            end = generator.observe(values, stamps, done, end)  # a custom generator may want to emit sooner
            self._emitter.push(values[done:end], stamps[done:end])
            self._until_emit -= end - done
            if self._until_emit == 0 or generator.punctuated:
                self.emit(periodic=self._until_emit == 0)
            done = end

    def _pass_on(self, values: Values) -> None:
        """As in Flink, records may have no timestamps although a strategy is given: whoever needs them will complain."""
        if not self._silent and not self._warned:
            self._warned = True
            print(  # noqa: T201  forwarded to the driver
                f"firesteel: the records of operator {self._operator.name!r} have no timestamps, so its watermark strategy "
                f"has no effect. Give the strategy a with_timestamp_assigner(...), or use a source whose records carry them",
                file=sys.stderr,
            )
        self._emitter.push(values, None)

    def _extract(self, values: Values, times: Times) -> list[Any]:
        assigner = self._strategy.timestamp_assigner
        rest: Any = iter(values)
        try:
            if assigner is None:
                stamps = list(times) if times is not None else [None] * len(values)
            elif times is None:
                stamps = list(map(assigner.extract_timestamp, rest, repeat(MIN_WATERMARK)))
            else:
                before = [MIN_WATERMARK if time is None else time for time in times]
                stamps = list(map(assigner.extract_timestamp, rest, before))
        except Exception as error:
            raise on_record(self._operator, last_of(values, rest), error) from error
        if not self._silent and set(map(type, stamps)) != {int}:
            index = next(i for i, stamp in enumerate(stamps) if type(stamp) is not int)
            raise on_record(self._operator, values[index], _no_timestamp(stamps[index], assigner))
        return stamps

    # ---- time

    def emit(self, periodic: bool = True) -> None:
        """Send the watermark on, if it moved."""
        if periodic:
            self._until_emit = WATERMARK_RECORDS
            self._splits.periodic()
        watermark = self._splits.watermark
        if watermark > self.watermark and not self._silent:
            self.watermark = watermark
            self._emitter.advance(watermark)
        self._update_idle()

    def caught_up(self) -> None:
        """Nothing more comes for now: event time must not wait for it."""
        self._splits.find_idle()
        self.emit()

    def held_back(self) -> None:
        """Records are not read because this input is ahead of others: that they do not come does not make it idle."""
        self._splits.not_idle_yet()

    def wake(self) -> int | None:
        """When an epoch is needed, data or not: to find out that this source is idle."""
        return self._splits.wake()

    def advance(self, watermark: int) -> None:
        if (
            watermark == MAX_WATERMARK
        ):  # the end of the input is the only thing to pass on, and not to remember (see Gate)
            self._emitter.advance(watermark)

    def idle(self, idle: bool) -> None:
        """Whether there is anything further up that records can come from."""
        self._starved = idle
        self._update_idle()

    @property
    def reached(self) -> int:
        """The watermark as it would be emitted now."""
        return max(self.watermark, self._splits.watermark)

    @property
    def is_idle(self) -> bool:
        """Whether nobody has to wait for this subtask."""
        return self._is_idle

    def _update_idle(self) -> None:
        idle = self._starved or self._splits.idle
        if idle != self._is_idle:
            self._is_idle = idle
            self._emitter.idle(idle)

    # ---- as state

    def snapshot(self) -> dict[str, Any]:
        splits = self._splits.snapshot()
        untouched = self.watermark == MIN_WATERMARK and self._until_emit == WATERMARK_RECORDS
        if untouched and not splits and not self._is_idle:
            return {}
        state = {"watermark": self.watermark, "until": self._until_emit, "starved": self._starved}
        return {**state, "silent": self._is_idle, **splits}

    def restore(self, saved: dict[str, Any]) -> None:
        self.watermark, self._until_emit = saved["watermark"], saved["until"]
        self._splits.restore(saved)
        self._starved = saved.get("starved", False)
        self._is_idle = saved.get("silent", saved.get("idle", False))
        if self._is_idle:
            self._emitter.idle(True)


def _no_timestamp(stamp: Any, assigner: Any) -> UserCodeError:
    if assigner is None:
        return UserCodeError(
            "the record has no timestamp, so no watermark can follow it. Give the strategy a "
            "with_timestamp_assigner(...), or use a source whose records carry one"
        )
    return UserCodeError(f"extract_timestamp() returned {stamp!r:.200}; it must return an int, milliseconds since 1970")
