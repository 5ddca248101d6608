"""How records, watermarks and idleness move between the operators of a slot.

Records travel as two columns: a list of values, and a list of their timestamps or None where a stream has none. A
watermark travels between two such batches, in order with them. Everything that takes them is a `Receiver`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

MIN_WATERMARK = -(1 << 63)
"""Nothing is known about event time yet."""
MAX_WATERMARK = (1 << 63) - 1
"""No record will come any more."""

Values = list[Any]
Times = list[Any] | None
Push = Callable[[Values, Times], None]

Partials = tuple[int, list[Any], list[Any], int]
"""What records were combined into before they were sent: the start of their window, keys, a value for each key, and how many
records it stands for. A record that is in several windows counts for the last one."""

Take = Callable[[Partials], None]

Note = int | Partials
"""A watermark, or partial results."""

Batch = Values | tuple[Values, Times, list[tuple[int, Note]], bool]
"""What an exchange sends at once: values alone, or values, timestamps, notes as (records before it, note), and whether the
channel is idle at the end."""


class Receiver(Protocol):
    """Takes what an operator gives out. Lists are shared between receivers: nobody changes one that was pushed. Who may change
    the records in it is decided in `sharing.py`."""

    def push(self, values: Values, times: Times) -> None: ...

    def advance(self, watermark: int) -> None: ...

    def idle(self, idle: bool) -> None: ...


class Emitter:
    """An operator's output: everyone who reads it, and everyone who reads one of its side outputs.

    :ivar separate: the output and side outputs must share no objects, as one of their readers could change them.
    """

    separate = False

    def __init__(self, count: list[int], check: Callable[[Values], Values] | None = None) -> None:
        self._count = count
        self._check = check
        self._readers: list[Receiver] = []
        self._sides: dict[str, Emitter] = {}

    def add(self, receiver: Receiver) -> None:
        self._readers.append(receiver)

    def add_side(self, tag_id: str, check: Callable[[Values], Values] | None) -> Emitter:
        self._sides[tag_id] = Emitter(self._count, check)
        return self._sides[tag_id]

    def noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose results will be pushed here, those of a batch at once. A harness looks at each as it is made."""
        return call

    def noting_one(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The same for a function with one result."""
        return call

    @property
    def tags(self) -> list[str]:
        """The side outputs somebody reads."""
        return list(self._sides)

    def push(self, values: Values, times: Times) -> None:
        if self._check is not None:
            values = self._check(values)
        self._count[1] += len(values)
        for reader in self._readers:
            reader.push(values, times)

    def push_side(self, tag_id: str, values: Values, times: Times) -> None:
        self._sides[tag_id].push(values, times)

    def advance(self, watermark: int) -> None:
        for reader in self._readers:
            reader.advance(watermark)
        for side in self._sides.values():
            side.advance(watermark)

    def idle(self, idle: bool) -> None:
        for reader in self._readers:
            reader.idle(idle)
        for side in self._sides.values():
            side.idle(idle)


class Gate:
    """An operator's watermark: the minimum over its channels that are not idle, and never going back."""

    def __init__(self, advance: Callable[[int], None], idle: Callable[[bool], None]) -> None:
        self._advance, self._idle = advance, idle
        self._channels: dict[str, Channel] = {}
        self._is_idle = False
        self.watermark = MIN_WATERMARK

    def channel(self, name: str, push: Push, take: Take | None = None) -> Channel:
        """A way in. The name finds its watermark again after a restore."""
        self._channels[name] = channel = Channel(self, push, take)
        return channel

    def update(self) -> None:
        channels = self._channels.values()
        watermark = _together([(channel.watermark, channel.is_idle) for channel in channels])
        if watermark > self.watermark:
            self.watermark = watermark
            self._advance(watermark)
        is_idle = all(channel.is_idle for channel in channels)
        if self._is_idle != is_idle:
            self._is_idle = is_idle
            self._idle(is_idle)

    def snapshot(self) -> dict[str, Any]:
        """The watermarks; one that has not moved needs no saving. If all input has ended, how far they were before: the end is
        said again after a restore, unless there is more input then, whose records would all be late."""
        ended = self.watermark == MAX_WATERMARK
        states = {n: (c.reached if ended else c.watermark, c.is_idle) for n, c in self._channels.items()}
        moved = {name: state for name, state in states.items() if state != (MIN_WATERMARK, False)}
        watermark = _together(states.values()) if ended else self.watermark
        return {"watermark": watermark, "channels": moved, "idle": self._is_idle} if moved else {}

    def restore(self, saved: dict[str, Any]) -> None:
        self.watermark, self._is_idle = saved["watermark"], saved["idle"]
        if self._is_idle:
            self._idle(True)
        for name, (watermark, is_idle) in saved["channels"].items():
            if name in self._channels:
                channel = self._channels[name]
                channel.watermark, channel.is_idle = watermark, is_idle
                channel.reached = watermark if watermark < MAX_WATERMARK else MIN_WATERMARK


def _together(channels: Collection[tuple[int, bool]]) -> int:
    """
    :param channels: watermarks, and whether they are idle.
    """
    active = [watermark for watermark, is_idle in channels if not is_idle]
    # when the last channel falls silent, the others have been waited for long enough
    return min(active) if active else max(watermark for watermark, _ in channels)


class Channel:
    """One way into an operator: a subtask of an edge's producer.

    :ivar reached: the watermark before the end of the input, if that has come.
    """

    __slots__ = ("_gate", "is_idle", "push", "reached", "take", "watermark")

    def __init__(self, gate: Gate, push: Push, take: Take | None) -> None:
        self._gate = gate
        self.push, self.take = push, take
        self.watermark = self.reached = MIN_WATERMARK
        self.is_idle = False

    def advance(self, watermark: int) -> None:
        if watermark > self.watermark:
            self.watermark = watermark
            if watermark < MAX_WATERMARK:
                self.reached = watermark
            self._gate.update()

    def idle(self, idle: bool) -> None:
        if idle != self.is_idle:
            self.is_idle = idle
            self._gate.update()
