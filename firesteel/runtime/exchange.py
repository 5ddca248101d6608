"""The sending end of an exchange: records are collected into batches for each target slot.

Batches close at record counts, never at times, so the same input makes the same batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from firesteel.errors import InvalidKeyError, SerializationError
from firesteel.graph.keys import KeyGroups, subtask_of
from firesteel.graph.nodes import Partitioning
from firesteel.graph.plan import PlannedEdge, PlannedOperator
from firesteel.runtime.failures import OperatorFailure, on_record
from firesteel.runtime.wire import ROW

BATCH_RECORDS = 8192

Send = Callable[[int, bytes], None]
"""Takes the target slot and a batch."""


class Exchange:
    """One edge out of this slot. `write` takes a list of records, `flush` closes what is open."""

    def __init__(
        self, edge: PlannedEdge, upstream: PlannedOperator, downstream: PlannedOperator, slot: int, send: Send
    ) -> None:
        self._upstream = upstream
        self._prefix = ROW.pack(downstream.level, edge.id)
        self._slot = slot
        self._send = send
        self._buffers: list[list[Any]] = [[] for _ in range(downstream.parallelism)]

    def write(self, values: list[Any]) -> None:
        """Forward: to the slot of the same index."""
        self._buffers[self._slot].extend(values)
        self._flush_full()

    def flush(self) -> None:
        for target, buffer in enumerate(self._buffers):
            if buffer:
                self._close(target)

    def _flush_full(self) -> None:
        for target, buffer in enumerate(self._buffers):
            if len(buffer) >= BATCH_RECORDS:
                self._close(target)

    def _close(self, target: int) -> None:
        buffer = self._buffers[target]
        try:
            payload = self._prefix + pickle.dumps(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise OperatorFailure(self._upstream, "sending a record on", _unpicklable(buffer, error)) from error
        self._send(target, payload)
        buffer.clear()


class RebalanceExchange(Exchange):
    """Records to the targets in turn, going on where the last batch stopped."""

    _next = 0

    def write(self, values: list[Any]) -> None:
        targets = len(self._buffers)
        for target, buffer in enumerate(self._buffers):
            buffer.extend(values[(target - self._next) % targets :: targets])
        self._next = (self._next + len(values)) % targets
        self._flush_full()


class KeyExchange(Exchange):
    """Records to the subtask that owns their key's group."""

    def __init__(
        self,
        edge: PlannedEdge,
        upstream: PlannedOperator,
        downstream: PlannedOperator,
        slot: int,
        send: Send,
        selector: Callable[[Any], Any],
        groups: KeyGroups,
    ) -> None:
        super().__init__(edge, upstream, downstream, slot, send)
        self._downstream = downstream
        self._selector = selector
        self._route = _Route([buffer.append for buffer in self._buffers], groups)

    def write(self, values: list[Any]) -> None:
        route, selector = self._route, self._selector
        value = None
        try:
            for value in values:
                route[selector(value)](value)
        except Exception as error:
            raise on_record(self._downstream, value, self._explain(value, error)) from error
        self._flush_full()

    def _explain(self, value: Any, error: Exception) -> Exception:
        """An unhashable key fails in the route's dict with a message that does not speak of keys."""
        if isinstance(error, TypeError) and "unhashable" in str(error):
            try:
                self._route.groups.of(self._selector(value))
            except InvalidKeyError as explained:
                return explained
        return error


class _Route(dict[Any, Callable[[Any], None]]):
    """key -> the `append` of its target's buffer: one dict hit per record, and no arithmetic."""

    def __init__(self, appends: list[Callable[[Any], None]], groups: KeyGroups) -> None:
        super().__init__()
        self._appends = appends
        self.groups = groups

    def __missing__(self, key: Any) -> Callable[[Any], None]:
        groups = self.groups
        append = self._appends[subtask_of(groups.of(key), len(self._appends), groups.max_parallelism)]
        if len(self) >= groups.capacity:
            self.clear()
        self[key] = append
        return append


def _unpicklable(buffer: list[Any], error: Exception) -> Exception:
    for value in buffer:
        try:
            pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as reason:  # noqa: BLE001  whatever a user's __reduce__ raises means the same here
            return SerializationError(
                f"the record {value!r:.300} of type {type(value).__qualname__} cannot be sent to another slot: {reason}. "
                f"Emit values that can be pickled"
            )
    return error


def create_exchange(
    edge: PlannedEdge,
    upstream: PlannedOperator,
    downstream: PlannedOperator,
    slot: int,
    send: Send,
    selector: Callable[[Any], Any] | None,
    groups: KeyGroups,
) -> Exchange:
    """The sending end for an edge's partitioning."""
    if edge.partitioning is Partitioning.KEY:
        assert selector is not None
        return KeyExchange(edge, upstream, downstream, slot, send, selector, groups)
    kind = RebalanceExchange if edge.partitioning is Partitioning.REBALANCE else Exchange
    return kind(edge, upstream, downstream, slot, send)
