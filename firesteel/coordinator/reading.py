"""The sources of a job, epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.base import EnumeratorContext, Json, SplitEnumerator
from firesteel.coordinator.alignment import WatermarkAlignment
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.sizing import EpochSizer
from firesteel.graph.nodes import Read
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings


@dataclass(frozen=True)
class PlannedReading:
    """What one epoch reads."""

    ranges: Mapping[str, Sequence[Sequence[Json]]]  # source uid -> subtask -> ranges
    units: int  # how much that is
    caught_up: Sequence[str]  # sources that have nothing more to give for now
    ended: Sequence[str]  # sources that never will have
    final: bool  # no source will
    splits: Mapping[str, Sequence[Sequence[str]]]  # source uid -> subtask -> the splits it has, where sources name them
    held_back: Sequence[str]  # sources that are not read because they are ahead of others
    over: bool  # the job had finished before it was started again, and there is nothing new to read


class SourceReading:
    """Plans what every source reads in the next epoch, and adapts how much that is."""

    def __init__(self, plan: JobPlan, settings: JobSettings) -> None:
        target = settings.epoch_target_ms
        if settings.checkpoints.interval_ms is not None:
            target = min(target, settings.checkpoints.interval_ms)  # else checkpoints would come late
        self._alignment = WatermarkAlignment(plan)
        if self._alignment.interval_ms is not None:
            target = min(target, self._alignment.interval_ms)
        self._sources: dict[str, tuple[SplitEnumerator, EpochSizer]] = {}
        self._last: dict[str, int] = {}
        self._completed: Mapping[str, Json] | None = None
        self._over = False
        self.epoch_s = 0.0  # how long epochs take at the moment
        for operator in plan.sources():
            assert isinstance(operator.operator, Read)
            context = EnumeratorContext(operator.uid, operator.parallelism)
            enumerator = operator.operator.source.create_enumerator(context)
            self._sources[operator.uid] = (enumerator, EpochSizer(target / 1000, enumerator.first_units))

    def restore(self, start: CheckpointMetadata) -> None:
        """Go on from where the sources were at this checkpoint."""
        self._over = start.final
        for uid, (enumerator, _) in self._sources.items():
            if uid in start.positions:
                enumerator.restore(start.positions[uid])

    def checkpoint_completed(self, positions: Mapping[str, Json]) -> None:
        """Any thread may say so; the enumerators hear of it on their own."""
        self._completed = positions

    def tell_completed(self) -> None:
        """Tell the enumerators how far a complete checkpoint is, if there is a new one."""
        completed, self._completed = self._completed, None
        if completed is not None:
            for uid, (enumerator, _) in self._sources.items():
                if uid in completed:
                    enumerator.completed(completed[uid])

    def plan(self) -> PlannedReading:
        """What the next epoch reads."""
        self.tell_completed()
        ranges: dict[str, Sequence[Sequence[Json]]] = {}
        splits: dict[str, Sequence[Sequence[str]]] = {}
        caught_up: list[str] = []
        held_back = self._alignment.held_back([uid for uid, (each, _) in self._sources.items() if each.finished()])
        self._last = dict.fromkeys(held_back, 0)
        for uid, (enumerator, sizer) in self._sources.items():
            if uid in held_back:
                continue
            assignment = enumerator.plan(sizer.units)
            ranges[uid] = assignment.ranges
            self._last[uid] = assignment.units
            if assignment.splits is not None:
                splits[uid] = assignment.splits
            done = assignment.caught_up
            if done if done is not None else assignment.units < sizer.units:
                caught_up.append(uid)
        ended = [uid for uid, (enumerator, _) in self._sources.items() if enumerator.finished()]
        units, final = sum(self._last.values()), len(ended) == len(self._sources)
        self._over = self._over and final and not units
        return PlannedReading(ranges, units, caught_up, ended, final, splits, held_back, self._over)

    def stop(self, *, drain: bool) -> PlannedReading:
        """An epoch that reads nothing, because the job is to end with it.

        :param drain: no source will ever have more, so that event time comes to its end.
        """
        self._last = dict.fromkeys(self._sources, 0)
        ended = [uid for uid, (enumerator, _) in self._sources.items() if drain or enumerator.finished()]
        return PlannedReading({}, 0, [], ended, drain, {}, [], self._over)

    def observe(self, seconds: float, reports: Iterable[dict[str, Any]]) -> None:
        """The planned epoch took so long, and this is what the slots say about it."""
        self.epoch_s = seconds
        self._alignment.observe(reports)
        for uid, (_, sizer) in self._sources.items():
            sizer.observe(self._last[uid], seconds)

    def positions(self) -> dict[str, Json]:
        """Where each source goes on after everything planned so far."""
        return {uid: enumerator.snapshot() for uid, (enumerator, _) in self._sources.items()}

    def progress(self) -> float | None:
        """How much of a bounded input is read, by the source that is furthest behind."""
        parts = [enumerator.progress() for enumerator, _ in self._sources.values()]
        known = [part for part in parts if part is not None]
        return min(known) if known and len(known) == len(parts) else None

    def close(self) -> None:
        for enumerator, _ in self._sources.values():
            enumerator.close()
