"""The sending end of an exchange: records are collected into batches for each target slot.

Batches close at record counts, never at times, so the same input makes the same batches. A batch without timestamps or
watermarks is a list. One with them is a tuple: watermarks are noted with the number of records before them, so the receiver
takes them in exactly the order in which they were written. So are partial results of windows (`windows/precombining.py`),
which stand for records. Batches for other slots are pickled; those for this one may stay as they are (`own.py`).
"""

from __future__ import annotations

import contextlib
import pickle
import random
from collections.abc import Callable
from typing import Any, Protocol

from firesteel.common.plain import is_plain, pickle_plain
from firesteel.datastream.fields import explain_key
from firesteel.errors import GraphError, SerializationError
from firesteel.graph.keys import KeyGroups, subtask_of
from firesteel.graph.plan import PlannedEdge, PlannedOperator
from firesteel.runtime.callables import given_selector
from firesteel.runtime.failures import OperatorFailure, last_of, on_record
from firesteel.runtime.flow import MIN_WATERMARK, Batch, Channel, Note, Times, Values
from firesteel.runtime.own import OwnBatches
from firesteel.runtime.wire import ROW

BATCH_RECORDS = 8192
_NOTHING = object()


class Send(Protocol):
    """Takes the target slot and a row's payload."""

    def __call__(self, target: int, payload: bytes, *, first: bool = False) -> None: ...


class _Buffer:
    """What is collected for one target."""

    __slots__ = ("idle", "marks", "partials", "times", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.times: list[Any] = []  # as long as values, or empty while none has a timestamp
        self.marks: list[tuple[int, Note]] = []
        self.partials = 0
        self.idle = False

    def pad(self) -> None:
        """Give a timestamp column to values that came without."""
        missing = len(self.values) - len(self.times)
        if missing:
            self.times += [None] * missing

    def note(self, note: Note, partials: int = 0) -> None:
        """Put it after the records that are here already; a watermark in the place of the one before it."""
        marks, position = self.marks, len(self.values)
        if partials == 0 and marks and marks[-1][0] == position and type(marks[-1][1]) is int:
            marks.pop()
        marks.append((position, note))
        self.partials += partials

    @property
    def full(self) -> bool:
        return len(self.values) + self.partials >= BATCH_RECORDS

    def first(self) -> Any:
        """Something of what is collected, to judge the rest by."""
        if self.values:
            return self.values[0]
        return next((note[2][0] for _, note in self.marks if not isinstance(note, int)), _NOTHING)

    def batch(self, idle: bool) -> Batch:
        if not self.times and not self.marks and idle == self.idle:
            return self.values
        if self.times:
            self.pad()
        self.idle = idle
        return self.values, self.times or None, self.marks, idle

    def clear(self) -> None:
        """The same lists again: routes hold on to their `append`."""
        self.values.clear()
        self.times.clear()
        self.marks.clear()
        self.partials = 0


class Exchange:
    """One edge out of this slot. Forwards to the slot of the same index; subclasses spread in other ways.

    :ivar alone: nobody else has the records that come here, or parts of them.
    """

    alone = False

    def __init__(
        self,
        edge: PlannedEdge,
        upstream: PlannedOperator,
        downstream: PlannedOperator,
        slot: int,
        send: Send,
        own: OwnBatches,
    ) -> None:
        self._edge, self._upstream, self._downstream = edge, upstream, downstream
        self._prefix = ROW.pack(downstream.level, edge.id, slot)
        self._slot, self._send, self._own = slot, send, own
        self._targets = edge.targets(slot, upstream.parallelism, downstream.parallelism)
        self._buffers = [_Buffer() for _ in self._targets]
        self._watermark = MIN_WATERMARK
        self._idle = False

    def push(self, values: Values, times: Times) -> None:
        """Everything to every target, which is right for forward and broadcast."""
        for buffer in self._buffers:
            _extend(buffer, values, times)
        self._close_full()

    def advance(self, watermark: int) -> None:
        if watermark <= self._watermark:
            return  # a source that has ended says so in every epoch
        self._watermark = watermark
        for buffer in self._buffers:
            buffer.note(watermark)

    def idle(self, idle: bool) -> None:
        if (
            self._idle and not idle
        ):  # said before anything else of this epoch, or others' watermarks make its records late
            for target in self._targets:
                self._send(target, self._prefix, first=True)
        self._idle = idle

    def flush(self, barrier: bool = False) -> None:
        """The level has ended.

        :param barrier: state is saved when the epoch has.
        """
        for target, buffer in zip(self._targets, self._buffers, strict=True):
            if buffer.values or buffer.marks or buffer.idle != self._idle:
                self._close(target, buffer)

    def _close_full(self) -> None:
        for target, buffer in zip(self._targets, self._buffers, strict=True):
            if buffer.full:
                self._close(target, buffer)

    def _close(self, target: int, buffer: _Buffer) -> None:
        batch = buffer.batch(self._idle)
        if target != self._slot or not self._own.keep(self._downstream.level, self._edge.id, batch, self.alone):
            try:
                payload = self._prefix + _pickled(batch, buffer.first())
            except Exception as error:
                raise OperatorFailure(self._upstream, "sending a record on", _unpicklable(buffer, error)) from error
            self._send(target, payload)
        buffer.clear()


class GlobalExchange(Exchange):
    """Records to the first target. The others get watermarks, or nobody behind them would ever get any."""

    def push(self, values: Values, times: Times) -> None:
        _extend(self._buffers[0], values, times)
        self._close_full()


class RoundRobinExchange(Exchange):
    """Records to the targets in turn, going on where the last batch stopped: rebalance and rescale."""

    _next = 0

    def push(self, values: Values, times: Times) -> None:
        count = len(self._buffers)
        for index, buffer in enumerate(self._buffers):
            turn = slice((index - self._next) % count, None, count)
            _extend(buffer, values[turn], None if times is None else times[turn])
        self._next = (self._next + len(values)) % count
        self._close_full()


class RoutedExchange(Exchange):
    """Records to targets chosen one by one."""

    def _choose(self, value: Any) -> int:
        raise NotImplementedError

    def push(self, values: Values, times: Times) -> None:
        value = None
        try:
            chosen = []
            for value in values:
                chosen.append(self._choose(value))
        except Exception as error:
            raise on_record(self._downstream, value, error) from error
        for target, buffer in enumerate(self._buffers):
            mine = [index for index, choice in enumerate(chosen) if choice == target]
            _extend(buffer, [values[i] for i in mine], None if times is None else [times[i] for i in mine])
        self._close_full()


class ShuffleExchange(RoutedExchange):
    """Records to random targets; seeded, so that a run can be repeated."""

    def __init__(self, *place: Any) -> None:
        super().__init__(*place)
        self._random = random.Random(self._edge.id)

    def _choose(self, value: Any) -> int:
        return self._random.randrange(len(self._buffers))


class CustomExchange(RoutedExchange):
    """Records to the target a user's partitioner names."""

    def __init__(self, *place: Any, selector: Callable[[Any], Any], partition: Callable[[Any, int], int]) -> None:
        super().__init__(*place)
        self._selector, self._partition = selector, partition

    def _choose(self, value: Any) -> int:
        count = len(self._buffers)
        target = self._partition(self._selector(value), count)
        if not isinstance(target, int) or not 0 <= target < count:
            raise GraphError(f"the partitioner returned {target!r}; it must return a number from 0 to {count - 1}")
        return target


class KeyExchange(Exchange):
    """Records to the subtask that owns their key's group."""

    def __init__(self, *place: Any, selector: Callable[[Any], Any], groups: KeyGroups) -> None:
        super().__init__(*place)
        self._selector = selector
        self._route = Route([buffer.values.append for buffer in self._buffers], groups)
        self._timed = Route([(buffer.values.append, buffer.times.append) for buffer in self._buffers], groups)

    def push(self, values: Values, times: Times) -> None:
        rest = iter(values)
        try:
            if times is None:
                for value, add in zip(values, map(self._route.__getitem__, map(self._selector, rest)), strict=True):
                    add(value)
            else:
                for buffer in self._buffers:
                    buffer.pad()
                routes = map(self._timed.__getitem__, map(self._selector, rest))
                for value, time, (add, stamp) in zip(values, times, routes, strict=True):
                    add(value)
                    stamp(time)
        except Exception as error:
            value = last_of(values, rest)
            raise on_record(self._downstream, value, self._explain(value, error)) from error
        self._close_full()

    def _explain(self, value: Any, error: Exception) -> Exception:
        """Fields that are not there and unhashable keys fail with messages that do not speak of keys."""
        selector = given_selector(self._edge.key_selector)
        missing = explain_key(selector, value)
        if missing is not None:
            return missing
        try:
            self._route.groups.of(selector(value))
        except Exception as explained:  # noqa: BLE001  as the user's own code raises it, with its line
            return explained
        return error


class Route(dict[Any, Any]):
    """key -> what belongs to its target: one dict hit per record, and no arithmetic."""

    def __init__(self, targets: list[Any], groups: KeyGroups) -> None:
        super().__init__()
        self._targets = targets
        self.groups = groups

    def __missing__(self, key: Any) -> Any:
        groups = self.groups
        target = self._targets[subtask_of(groups.of(key), len(self._targets), groups.max_parallelism)]
        if len(self) >= groups.capacity:
            self.clear()
        self[key] = target
        return target


def receive(batch: Batch, channel: Channel) -> None:
    """The receiving end: hand a batch to its channel in the order in which it was written."""
    if type(batch) is list:
        channel.push(batch, None)
        return
    values, times, marks, idle = batch
    if values or marks:
        channel.idle(False)
    done = 0
    for position, note in marks:
        if position > done:
            channel.push(values[done:position], None if times is None else times[done:position])
            done = position
        if isinstance(note, int):
            channel.advance(note)
        else:
            assert channel.take is not None, "only windows are sent partial results"
            channel.take(note)
    if done < len(values):
        channel.push(values[done:], None if times is None else times[done:])
    channel.idle(idle)


def _pickled(batch: Batch, first: Any) -> bytes:
    """The batch, judged by its first value. The others may be anything that is no cycle, which is how it fails then."""
    if is_plain(first):
        with contextlib.suppress(ValueError, RecursionError):
            return pickle_plain(batch)
    return pickle.dumps(batch, protocol=pickle.HIGHEST_PROTOCOL)


def _extend(buffer: _Buffer, values: Values, times: Times) -> None:
    if times is not None:
        buffer.pad()
        buffer.times += times
    buffer.values += values


def _unpicklable(buffer: _Buffer, error: Exception) -> Exception:
    for _, note in buffer.marks:
        if not isinstance(note, int):
            error = SerializationError(
                f"what a window's records were combined into cannot be sent to another slot: {error}. Use accumulators that "
                f"can be pickled, or call pre_combine(False) on the windowed stream"
            )
    for value in buffer.values:
        try:
            pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as reason:  # noqa: BLE001  whatever a user's __reduce__ raises means the same here
            return SerializationError(
                f"the record {value!r:.300} of type {type(value).__qualname__} cannot be sent to another slot: {reason}. "
                f"Emit values that can be pickled"
            )
    return error
