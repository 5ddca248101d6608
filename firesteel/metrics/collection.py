"""The metrics of one slot, and of a whole job.

A slot's snapshot is JSON: `{operator uid: {metric name: value}}`, where a value is

* a number for a counter or gauge,
* `{"count": ..., "rate": ...}` for a meter, the rate in events per second,
* `{"count": ..., "sum": ..., "min": ..., "max": ..., "mean": ...}` for a distribution; min, max and mean are None as long
  as there is nothing in it.

Updates are arithmetic on attributes; everything else is left to the snapshot, which is taken once an epoch.
"""

from __future__ import annotations

import logging
import numbers
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from firesteel.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["SlotMetrics", "Snapshot", "merge"]

log = logging.getLogger("firesteel")

Snapshot = Mapping[str, Mapping[str, Any]]
Clock = Callable[[], float]
_M = TypeVar("_M", bound="_Reported")


class SlotMetrics:
    """All metrics of the operators in one slot."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._groups: dict[str, SlotMetricGroup] = {}

    def group(self, uid: str) -> MetricGroup:
        """The group that an operator's functions register their metrics in."""
        if uid not in self._groups:
            self._groups[uid] = SlotMetricGroup(f"operator {uid}", "", {}, self._clock)
        return self._groups[uid]

    def snapshot(self) -> dict[str, dict[str, Any]]:
        """All values now. Operators without metrics are left out."""
        reports = {uid: group.report() for uid, group in self._groups.items()}
        return {uid: report for uid, report in reports.items() if report}


class SlotMetricGroup(MetricGroup):
    def __init__(self, owner: str, scope: str, metrics: dict[str, _Reported], clock: Clock) -> None:
        self._owner, self._scope, self._metrics, self._clock = owner, scope, metrics, clock

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        scope = f"{self._scope}{name}." if extra is None else f"{self._scope}{name}.{extra}."
        return SlotMetricGroup(self._owner, scope, self._metrics, self._clock)

    def counter(self, name: str) -> Counter:
        return self._register(name, SlotCounter())

    def gauge(self, name: str, obj: Callable[[], int | float]) -> None:
        if not callable(obj):
            raise TypeError(f"gauge({name!r}) takes a function that gives the value, not {obj!r:.100}")
        self._register(name, SlotGauge(f"{self._scope}{name} of {self._owner}", obj)).function = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        return self._register(name, SlotMeter(time_span_in_seconds, self._clock))

    def distribution(self, name: str) -> Distribution:
        return self._register(name, SlotDistribution())

    def _register(self, name: str, metric: _M) -> _M:
        full = f"{self._scope}{name}"
        there = self._metrics.setdefault(full, metric)
        if type(there) is not type(metric):
            kinds = f"{type(there).__name__} and {type(metric).__name__}".replace("Slot", "")
            raise ValueError(f"metric {full!r} of {self._owner} is registered as two kinds: {kinds}")
        return there

    def report(self) -> dict[str, Any]:
        values = {name: metric.report() for name, metric in self._metrics.items()}
        return {name: value for name, value in values.items() if value is not None}


class _Reported(Metric):
    def report(self) -> Any:
        """The value for the snapshot, None when there is none to report."""
        raise NotImplementedError


class SlotCounter(_Reported, Counter):
    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def get_count(self) -> int:
        return self._count

    def report(self) -> int:
        return int(self._count)


class SlotGauge(_Reported):
    """A gauge that fails must not fail the job: it is left out, and complained about once."""

    def __init__(self, name: str, function: Callable[[], Any]) -> None:
        self._name, self.function = name, function
        self._complained = False

    def report(self) -> int | float | None:
        try:
            value = self.function()
            if isinstance(value, numbers.Integral):
                return int(value)
            return float(value)
        except Exception as error:  # noqa: BLE001  a user's function may raise anything
            if not self._complained:
                self._complained = True
                log.warning(
                    "gauge %s gives no number and is not reported: %s: %s", self._name, type(error).__name__, error
                )
            return None


class SlotMeter(_Reported, Meter):
    """Remembers its count at each report, for as long as the time span."""

    def __init__(self, span_s: float, clock: Clock) -> None:
        self._count = 0
        self._span, self._clock = span_s, clock
        self._history: deque[tuple[float, int]] = deque([(clock(), 0)])

    def mark_event(self, value: int = 1) -> None:
        self._count += value

    def get_count(self) -> int:
        return self._count

    def report(self) -> dict[str, Any]:
        now, history = self._clock(), self._history
        history.append((now, self._count))
        while len(history) > 2 and history[1][0] <= now - self._span:
            history.popleft()  # the one that stays is the youngest that is old enough
        since, before = history[0]
        rate = (self._count - before) / (now - since) if now > since else 0.0
        return {"count": int(self._count), "rate": rate}


class SlotDistribution(_Reported, Distribution):
    def __init__(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._min = float("inf")
        self._max = float("-inf")

    def update(self, value: float) -> None:
        self._count += 1
        self._sum += value
        if value < self._min:
            self._min = value
        if value > self._max:
            self._max = value

    def report(self) -> dict[str, Any]:
        if not self._count:
            return {"count": 0, "sum": 0, "min": None, "max": None, "mean": None}
        total, least, most = (_number(value) for value in (self._sum, self._min, self._max))
        return {"count": self._count, "sum": total, "min": least, "max": most, "mean": total / self._count}


def merge(snapshots: Iterable[Snapshot]) -> dict[str, dict[str, Any]]:
    """The metrics of all slots as one: numbers (gauges too), counts, rates and sums add up."""
    merged: dict[str, dict[str, Any]] = {}
    for snapshot in snapshots:
        for uid, metrics in snapshot.items():
            into = merged.setdefault(uid, {})
            for name, value in metrics.items():
                into[name] = _merged(into[name], value) if name in into else value
    return merged


def _merged(one: Any, other: Any) -> Any:
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return one + other
    if "rate" in one:
        return {"count": one["count"] + other["count"], "rate": one["rate"] + other["rate"]}
    if not (one["count"] and other["count"]):
        return one if one["count"] else other
    count, total = one["count"] + other["count"], one["sum"] + other["sum"]
    least, most = min(one["min"], other["min"]), max(one["max"], other["max"])
    return {"count": count, "sum": total, "min": least, "max": most, "mean": total / count}


def _number(value: Any) -> int | float:
    """As JSON has it: numpy's numbers are none."""
    return int(value) if isinstance(value, numbers.Integral) else float(value)
