"""Watermark alignment: sources that are far ahead of others of their group are not read until those have caught up.

What a fast source reads ahead of event time has to be kept in state by whoever joins it with a slow one, so without this
state grows with the distance between them. What an epoch reads is planned here, so holding a source back is leaving it out
of the plan. It is decided before each epoch, by the watermarks after the one before: a source gets ahead by the allowed
drift and no more than an epoch's reading beyond. That is why epochs are not longer than the shortest update interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.graph.nodes import Read
from firesteel.graph.plan import JobPlan


class Reached(NamedTuple):
    """How far a source has come: the minimum over its subtasks that are not idle."""

    watermark: int
    idle: bool  # all of them are, and the watermark is as far as any of them came


class WatermarkAlignment:
    """The sources of a job that wait for each other."""

    def __init__(self, plan: JobPlan) -> None:
        self._groups: defaultdict[str, dict[str, int]] = defaultdict(dict)  # group -> source uid -> allowed drift
        self._reached: dict[str, Reached] = {}
        self.interval_ms: int | None = None
        """The shortest update interval; None: nobody waits for anybody."""
        for operator in plan.sources():
            assert isinstance(operator.operator, Read)
            strategy = operator.operator.strategy
            if isinstance(strategy, WatermarkStrategy) and strategy.alignment_group is not None:
                if strategy.kind == "none":
                    continue  # others would wait for its watermark for ever
                assert strategy.alignment_drift_ms is not None and strategy.alignment_interval_ms is not None
                self._groups[strategy.alignment_group][operator.uid] = strategy.alignment_drift_ms
                self.interval_ms = min(
                    self.interval_ms or strategy.alignment_interval_ms, strategy.alignment_interval_ms
                )

    def observe(self, reports: Iterable[dict[str, Any]]) -> None:
        """What the slots report after an epoch."""
        subtasks: defaultdict[str, list[Reached]] = defaultdict(list)
        for report in reports:
            for uid, reached in report["watermarks"].items():
                subtasks[uid].append(Reached(*reached))
        for uid, all_reached in subtasks.items():
            active = [each.watermark for each in all_reached if not each.idle]
            self._reached[uid] = (
                Reached(min(active), idle=False)
                if active
                else Reached(max(each.watermark for each in all_reached), idle=True)
            )

    def held_back(self, ended: Container[str]) -> list[str]:
        """The sources that have to wait. Never all of a group that are not idle: the one furthest behind goes on.

        :param ended: sources that nobody has to wait for any more.
        """
        held = []
        for group in self._groups.values():
            known = {uid: self._reached[uid] for uid in group if uid in self._reached and uid not in ended}
            lowest = min((each.watermark for each in known.values() if not each.idle), default=None)
            if lowest is not None:
                held += [uid for uid, each in known.items() if each.watermark > lowest + group[uid]]
        return held
