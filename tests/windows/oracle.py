"""What windows have to give, worked out the slow way from Flink's definitions. It shares no code with the engine.

Windows are pairs (start, end), or numbers for count windows, or "global". A pane is one window of one key with everything
that belongs to it; timers are a list; nothing is ever remembered that could be looked for.

* cleanup time = last timestamp + allowed lateness (by processing time: the last timestamp), for windows that have an end;
* a window is late when the watermark has reached its cleanup time, a record when it has reached timestamp + lateness;
* a record that all its windows are late for goes to the late ones; one that has a window in time does not;
* sessions that overlap or touch become one, with the records of all of them, the earlier session's first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

FOREVER = 2**63 - 1
NEVER_YET = -(2**63)

Span = Any  # (start, end), a number, or "global"


@dataclass
class Pane:
    key: Any
    window: Span
    records: list[tuple[Any, int | None]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)  # the trigger's


@dataclass
class Timer:
    time: int
    key: Any
    window: Span
    event: bool


def last_timestamp(window: Span) -> int:
    return window[1] - 1 if isinstance(window, tuple) else FOREVER


class Oracle:
    """Takes the steps of a script and notes what comes out, in the order it comes."""

    def __init__(
        self,
        assign: Callable[[Any, Any, int | None, int, int], list[Span]],  # (key, value, time, clock, records before)
        trigger: Any,
        evaluate: Callable[[Any, Span, list[Any]], list[Any]],
        *,
        event_time: bool,
        merging: bool = False,
        lateness: int = 0,
        evict: Callable[[list[tuple[Any, int | None]]], list[tuple[Any, int | None]]] | None = None,
        evict_after: bool = False,
        on_cleanup: Callable[[Any, Span], None] = lambda key, window: None,
    ) -> None:
        self.assign, self.trigger, self.evaluate, self.on_cleanup = assign, trigger, evaluate, on_cleanup
        self.event_time, self.merging = event_time, merging
        self.lateness = lateness if event_time else 0
        self.evict, self.evict_after = evict, evict_after
        self.panes: list[Pane] = []
        self.timers: list[Timer] = []
        self.watermark, self.clock = NEVER_YET, 0
        self.seen: dict[Any, int] = {}
        self.out: list[tuple[Any, int | None]] = []
        self.late: list[tuple[Any, int | None]] = []

    # ---- the script

    def record(self, key: Any, value: Any, time: int | None) -> None:
        windows = self.assign(key, value, time, self.clock, self.seen.get(key, 0))
        self.seen[key] = self.seen.get(key, 0) + 1
        in_time = False
        for window in windows:
            if self.merging:
                window = self.merge(key, window)
            if self.is_late(window):
                continue
            in_time = True
            pane = self.pane(key, window)
            pane.records.append((value, time))
            self.act(self.trigger.on_record(self, pane, value, time), pane, time)
            self.set_timer(self.cleanup_time(window), pane, self.event_time)
        if not in_time and self.event_time and time is not None and time + self.lateness <= self.watermark:
            self.late.append((value, time))

    def advance(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            self.fire(lambda timer: timer.event and timer.time <= watermark)

    def tick(self, clock: int) -> None:
        self.clock = clock
        self.fire(lambda timer: not timer.event and timer.time < clock)

    # ---- panes

    def pane(self, key: Any, window: Span) -> Pane:
        for pane in self.panes:
            if pane.key == key and pane.window == window:
                return pane
        self.panes.append(Pane(key, window))
        return self.panes[-1]

    def merge(self, key: Any, window: tuple[int, int]) -> tuple[int, int]:
        mine = sorted((p for p in self.panes if p.key == key), key=lambda pane: pane.window)
        touching = [p for p in mine if p.window[0] <= window[1] and p.window[1] >= window[0]]
        whole = (
            min([window[0], *(p.window[0] for p in touching)]),
            max([window[1], *(p.window[1] for p in touching)]),
        )
        if touching and [p.window for p in touching] != [whole]:
            united = Pane(key, whole, [record for p in touching for record in p.records])
            self.panes = [p for p in self.panes if p not in touching] + [united]
            gone = [p.window for p in touching]
            self.timers = [t for t in self.timers if t.key != key or t.window not in gone]
            self.trigger.on_merge(self, united, touching)
        return whole

    def cleanup_time(self, window: Span) -> int:
        return min(last_timestamp(window) + self.lateness, FOREVER)

    def is_late(self, window: Span) -> bool:
        return self.event_time and self.cleanup_time(window) <= self.watermark

    def set_timer(self, time: int, pane: Pane, event: bool, even_at_the_end_of_time: bool = False) -> None:
        timer = Timer(time, pane.key, pane.window, event)
        if (time < FOREVER or even_at_the_end_of_time) and timer not in self.timers:
            self.timers.append(timer)

    def fire(self, is_due: Callable[[Timer], bool]) -> None:
        while due := [timer for timer in self.timers if is_due(timer)]:
            timer = min(due, key=lambda each: each.time)  # the first of equals
            self.timers.remove(timer)
            pane = self.pane(timer.key, timer.window)
            self.act(self.trigger.on_timer(self, pane, timer.time, timer.event), pane, timer.time)
            if timer.event == self.event_time and timer.time == self.cleanup_time(timer.window):
                self.panes.remove(pane)
                self.timers = [t for t in self.timers if (t.key, t.window) != (pane.key, pane.window)]
                self.on_cleanup(pane.key, pane.window)

    def act(self, result: str, pane: Pane, time: int | None) -> None:
        if "fire" in result and pane.records:
            if self.evict is not None and not self.evict_after:
                pane.records = self.evict(pane.records)
            end = last_timestamp(pane.window)
            for value in self.evaluate(pane.key, pane.window, [value for value, _ in pane.records]):
                self.out.append((value, time if end == FOREVER else end))
            if self.evict is not None and self.evict_after:
                pane.records = self.evict(pane.records)
        if "purge" in result:
            pane.records = []


# ---- triggers


class ByEventTime:
    def on_record(self, world: Oracle, pane: Pane, value: Any, time: int | None) -> str:
        if last_timestamp(pane.window) <= world.watermark:
            return "fire"
        world.set_timer(last_timestamp(pane.window), pane, True, True)
        return ""

    def on_timer(self, world: Oracle, pane: Pane, time: int, event: bool) -> str:
        return "fire" if event and time == last_timestamp(pane.window) else ""

    def on_merge(self, world: Oracle, pane: Pane, parts: list[Pane]) -> None:
        """The record that made them one sets the timer, or fires."""


class ByProcessingTime:
    def on_record(self, world: Oracle, pane: Pane, value: Any, time: int | None) -> str:
        world.set_timer(last_timestamp(pane.window), pane, False, True)
        return ""

    def on_timer(self, world: Oracle, pane: Pane, time: int, event: bool) -> str:
        return "" if event else "fire"

    def on_merge(self, world: Oracle, pane: Pane, parts: list[Pane]) -> None:
        """The record that made them one sets the timer."""


class ByCount:
    def __init__(self, count: int) -> None:
        self.count = count

    def on_record(self, world: Oracle, pane: Pane, value: Any, time: int | None) -> str:
        pane.notes["count"] = pane.notes.get("count", 0) + 1
        if pane.notes["count"] < self.count:
            return ""
        pane.notes["count"] = 0
        return "fire"

    def on_timer(self, world: Oracle, pane: Pane, time: int, event: bool) -> str:
        return ""

    def on_merge(self, world: Oracle, pane: Pane, parts: list[Pane]) -> None:
        pane.notes["count"] = sum(part.notes.get("count", 0) for part in parts)


class Continuously:
    """At multiples of the interval; by event time at the end of the window too."""

    def __init__(self, interval: int, event: bool) -> None:
        self.interval, self.event = interval, event

    def schedule(self, world: Oracle, pane: Pane, after: int, fired: bool) -> None:
        """It fires at the end of the window and not after, unless that is long over: by the clock, in windows by event time."""
        end = last_timestamp(pane.window)
        ahead = after < end if fired else after <= end
        no_more = self.event and world.watermark == FOREVER  # the input has ended, and an endless window would go on
        pane.notes["next"] = end if (ahead and end < after + self.interval) or no_more else after + self.interval
        world.set_timer(pane.notes["next"], pane, self.event, True)

    def on_record(self, world: Oracle, pane: Pane, value: Any, time: int | None) -> str:
        if self.event:
            if last_timestamp(pane.window) <= world.watermark:
                return "fire"
            world.set_timer(last_timestamp(pane.window), pane, True, True)
        if pane.notes.get("next") is None:
            now = time if self.event else world.clock
            assert now is not None
            self.schedule(world, pane, now // self.interval * self.interval, fired=False)
        return ""

    def on_timer(self, world: Oracle, pane: Pane, time: int, event: bool) -> str:
        if event != self.event:
            return ""
        if event and time == last_timestamp(pane.window):
            return "fire"
        if pane.notes.get("next") != time:
            return ""
        self.schedule(world, pane, time, fired=True)
        return "fire"

    def on_merge(self, world: Oracle, pane: Pane, parts: list[Pane]) -> None:
        times = [part.notes["next"] for part in parts if part.notes.get("next") is not None]
        if times:
            pane.notes["next"] = min(times)
            world.set_timer(min(times), pane, self.event, True)


class ByDelta:
    def __init__(self, threshold: int) -> None:
        self.threshold = threshold

    def on_record(self, world: Oracle, pane: Pane, value: Any, time: int | None) -> str:
        last = pane.notes.setdefault("last", value[1])
        if abs(value[1] - last) <= self.threshold:
            return ""
        pane.notes["last"] = value[1]
        return "fire"

    def on_timer(self, world: Oracle, pane: Pane, time: int, event: bool) -> str:
        return ""


class Purging:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def on_record(self, *args: Any) -> str:
        return "fire and purge" if self.inner.on_record(*args) == "fire" else ""

    def on_timer(self, *args: Any) -> str:
        return "fire and purge" if self.inner.on_timer(*args) == "fire" else ""

    def on_merge(self, *args: Any) -> None:
        self.inner.on_merge(*args)


class Never:
    def on_record(self, *args: Any) -> str:
        return ""

    def on_timer(self, *args: Any) -> str:
        return ""
