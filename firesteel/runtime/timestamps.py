"""Timestamps and watermarks by a WatermarkStrategy.

A watermark is emitted after every `WATERMARK_RECORDS` records and whenever the source has nothing more to give for now.
So where it falls among the records does not depend on where epochs are cut: the same input fires the same timers between
the same records. How many records are left until the next one is part of the snapshot.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat
from typing import Any

from firesteel.common.watermark_strategy import WatermarkOutput, WatermarkStrategy
from firesteel.errors import UserCodeError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.failures import on_record
from firesteel.runtime.flow import MAX_WATERMARK, MIN_WATERMARK, Emitter, Times, Values

WATERMARK_RECORDS = 4096


class Timestamper:
    """Gives records their timestamps and follows them with watermarks. Watermarks from further up end here."""

    def __init__(
        self,
        operator: PlannedOperator,
        strategy: WatermarkStrategy,
        sources: frozenset[str],
        emitter: Emitter,
        now: Callable[[], int],
    ) -> None:
        self._operator, self._strategy, self._emitter, self._now = operator, strategy, emitter, now
        self.sources = sources  # uids of where its records come from
        self._generate: _Bounded | _Custom = (
            _Custom(strategy) if strategy.kind == "custom" else _Bounded(strategy.out_of_orderness_ms)
        )
        self._silent = strategy.kind == "none"
        self._warned = False
        self._until_emit = WATERMARK_RECORDS
        self._watermark = MIN_WATERMARK
        self._last_record = now()
        self._is_idle = False

    def push(self, values: Values, times: Times) -> None:
        self._last_record = self._now()
        if self._is_idle:
            self._is_idle = False
            self._emitter.idle(False)
        if times is None and self._strategy.timestamp_assigner is None and self._strategy.kind != "custom":
            self._pass_on(values)
            return
        stamps = self._extract(values, times)
        if self._silent:
            self._emitter.push(values, stamps)
            return
        done = 0
        while done < len(values):
            end = min(len(values), done + self._until_emit)
            end = self._generate.observe(values, stamps, done, end)  # a custom generator may want to emit sooner
            self._emitter.push(values[done:end], stamps[done:end])
            self._until_emit -= end - done
            if self._until_emit == 0 or self._generate.punctuated:
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
            raise on_record(self._operator, values[len(values) - rest.__length_hint__() - 1], error) from error
        if not self._silent and set(map(type, stamps)) != {int}:
            index = next(i for i, stamp in enumerate(stamps) if type(stamp) is not int)
            raise on_record(self._operator, values[index], _no_timestamp(stamps[index], assigner))
        return stamps

    def emit(self, periodic: bool = True) -> None:
        """Send the watermark on, if it moved."""
        if periodic:
            self._until_emit = WATERMARK_RECORDS
            self._generate.periodic()
        watermark = self._generate.watermark
        if watermark > self._watermark and not self._silent:
            self._watermark = watermark
            self._emitter.advance(watermark)

    def caught_up(self) -> None:
        """Nothing more comes for now: event time must not wait for it."""
        self.emit()
        idleness = self._strategy.idleness_ms
        if idleness is not None and not self._is_idle and self._now() - self._last_record >= idleness:
            self._is_idle = True
            self._emitter.idle(True)

    def wake(self) -> int | None:
        """When an epoch is needed, data or not: to find out that this source is idle."""
        if self._strategy.idleness_ms is None or self._is_idle:
            return None
        return int(self._last_record + self._strategy.idleness_ms)

    def advance(self, watermark: int) -> None:
        if watermark == MAX_WATERMARK:  # the end of the input is the only thing to pass on
            self._watermark = watermark
            self._emitter.advance(watermark)

    def idle(self, idle: bool) -> None:
        """Whether records come is judged here."""

    def snapshot(self) -> dict[str, Any]:
        highest = self._generate.highest
        if self._watermark == MIN_WATERMARK and highest is None and not self._is_idle:
            return {}
        return {"watermark": self._watermark, "until": self._until_emit, "highest": highest, "idle": self._is_idle}

    def restore(self, saved: dict[str, Any]) -> None:
        self._watermark, self._until_emit = saved["watermark"], saved["until"]
        self._generate.highest, self._is_idle = saved["highest"], saved["idle"]


class _Bounded:
    """The watermark trails the highest timestamp by a fixed bound."""

    punctuated = False

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self.highest: int | None = None

    @property
    def watermark(self) -> int:
        return MIN_WATERMARK if self.highest is None else self.highest - self._bound - 1

    def observe(self, values: Values, times: list[Any], start: int, end: int) -> int:
        highest = max(times[start:end])
        if self.highest is None or highest > self.highest:
            self.highest = highest
        return end

    def periodic(self) -> None:
        """The watermark is always up to date."""


class _Custom(WatermarkOutput):
    """A user's WatermarkGenerator."""

    def __init__(self, strategy: WatermarkStrategy) -> None:
        supplier = strategy.generator_supplier
        assert supplier is not None
        self._generator = supplier() if callable(supplier) else supplier
        self.watermark = MIN_WATERMARK
        self.punctuated = False
        self.highest: int | None = None

    def observe(self, values: Values, times: list[Any], start: int, end: int) -> int:
        self.punctuated = False
        for index in range(start, end):
            self._generator.on_event(values[index], times[index], self)
            if self.punctuated:
                return index + 1
        return end

    def periodic(self) -> None:
        self._generator.on_periodic_emit(self)

    def emit_watermark(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = self.highest = int(watermark)
            self.punctuated = True

    def mark_idle(self) -> None:
        """Idleness is judged by `with_idleness`."""

    def mark_active(self) -> None:
        """Idleness is judged by `with_idleness`."""


def _no_timestamp(stamp: Any, assigner: Any) -> UserCodeError:
    if assigner is None:
        return UserCodeError(
            "the record has no timestamp, so no watermark can follow it. Give the strategy a "
            "with_timestamp_assigner(...), or use a source whose records carry one"
        )
    return UserCodeError(f"extract_timestamp() returned {stamp!r:.200}; it must return an int, milliseconds since 1970")
