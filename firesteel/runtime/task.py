"""Everything that runs in one slot: subtask i of every operator, compiled once and run level by level.

No sockets and no Spark: `send` takes the rows it makes, so the same code runs under a test harness in one process.
"""

from __future__ import annotations

import json
import os
import pickle
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Json, ReaderContext, SinkWriter, SourceReader
from firesteel.datastream.functions import Function
from firesteel.errors import FiresteelError, SlotLostError
from firesteel.graph import nodes
from firesteel.graph.keys import KeyGroups, groups_of
from firesteel.graph.plan import JobPlan, PlannedEdge, PlannedOperator
from firesteel.runtime.context import SlotRuntimeContext
from firesteel.runtime.exchange import Exchange, create_exchange
from firesteel.runtime.failures import OperatorFailure, on_record
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.operators import Push, compile_operator, resolve_selector
from firesteel.runtime.snapshots import FileHandle, KeyedStore, Snapshots, Tell
from firesteel.runtime.wire import COLLECTED, DRIVER, REPORT, ROW, address_of
from firesteel.state.files import StateFile
from firesteel.state.hashmap import HashMapStore

SendRow = Callable[[int, bytes], None]


@dataclass(frozen=True)
class SlotPlace:
    """Which slot of which job this is."""

    job_id: str
    slot: int
    incarnation: int
    attempt: int
    directory: str  # the job's checkpoint directory
    restore: tuple[FileHandle, ...] = ()  # state files, oldest first
    main_classes: bytes = b""  # see graph.shipping


@dataclass(frozen=True)
class LevelOrder:
    """What the driver orders: run this level of this epoch."""

    epoch: int
    level: int
    ranges: dict[str, list[Json]] = field(default_factory=dict)  # source uid -> this slot's ranges
    checkpoint: int | None = None  # the barrier at the epoch's end
    snapshot: bool = True  # whether that barrier snapshots state, or only commits sinks
    completed: int | None = None  # the newest completed checkpoint


class SlotTask:
    """One slot's operators, state and connections."""

    def __init__(self, plan: JobPlan, place: SlotPlace, tell: Tell) -> None:
        self._plan = plan
        self._place = place
        self._position = (0, plan.levels - 1)  # the epoch and level this slot ran last
        self._nonce = uuid.uuid4().hex
        self._counts: dict[str, list[int]] = {operator.uid: [0, 0] for operator in plan.operators}
        self._send_row: SendRow = _nowhere
        self._sequence = 0
        self._inputs: dict[int, Push] = {}
        self._readers: list[tuple[PlannedOperator, SourceReader, Push]] = []
        self._writers: list[tuple[PlannedOperator, SinkWriter]] = []
        self._exchanges: list[tuple[int, Exchange]] = []
        self._functions: list[Function] = []
        self._stores: list[KeyedStore] = []
        self._groups: dict[int, KeyGroups] = {}
        self._pushes: dict[int, Push] = {}
        restored = self._restore()
        for operator in reversed(plan.operators):
            self._pushes[operator.id] = self._build(operator, restored.get(operator.uid))
        for operator in plan.operators:
            for edge in operator.inputs:
                if not edge.direct:
                    self._inputs[edge.id] = self._pushes[operator.id]
        self._snapshots = Snapshots(
            place.directory,
            place.incarnation,
            place.slot,
            self._stores,
            list(place.restore),
            place.main_classes,
            tell,
        )

    # ---- building

    def _build(self, operator: PlannedOperator, store: HashMapStore | None) -> Push:
        emit = self._emitter(operator)
        place = self._context(operator)
        here = self._place.slot < operator.parallelism
        if isinstance(operator.operator, nodes.Read):
            if here:
                self._readers.append((operator, operator.operator.source.create_reader(place), emit))
            return _nothing
        if isinstance(operator.operator, nodes.Collect):
            return self._counting(operator, self._collect)
        if isinstance(operator.operator, nodes.Write):
            if not here:
                return _nothing
            writer = operator.operator.sink.create_writer(place)
            self._writers.append((operator, writer))
            return self._counting(operator, _writing(operator, writer))
        keyed = None
        if operator.key_selector is not None:
            keyed = KeyedState(store or HashMapStore(self._key_groups(operator)))
            self._stores.append(KeyedStore(operator.uid, keyed.store))
        if here:
            self._open(operator, place, keyed)
        return self._counting(operator, compile_operator(operator, keyed, emit))

    def _open(self, operator: PlannedOperator, place: ReaderContext, keyed: KeyedState | None) -> None:
        context = SlotRuntimeContext(operator, place, self._place.attempt, keyed)
        for function in (getattr(operator.operator, "function", None), operator.key_selector):
            if isinstance(function, Function):
                try:
                    function.open(context)
                except Exception as error:
                    raise OperatorFailure(operator, "in open()", error) from error
                self._functions.append(function)

    def _emitter(self, operator: PlannedOperator) -> Push:
        """Where an operator's output goes: the one consumer itself, or a loop over several."""
        consumers = [self._consumer(operator, edge) for edge in self._plan.outputs(operator)]
        count = self._counts[operator.uid]

        def emit(values: list[Any]) -> None:
            count[1] += len(values)
            for consumer in consumers:
                consumer(values)

        return emit

    def _consumer(self, operator: PlannedOperator, edge: PlannedEdge) -> Push:
        if edge.direct:
            return self._pushes[edge.downstream]
        downstream = next(other for other in self._plan.operators if other.id == edge.downstream)
        selector = None if edge.key_selector is None else resolve_selector(edge.key_selector)
        groups = self._key_groups(downstream)
        exchange = create_exchange(edge, operator, downstream, self._place.slot, self._send, selector, groups)
        self._exchanges.append((operator.level, exchange))
        return exchange.write

    def _counting(self, operator: PlannedOperator, push: Push) -> Push:
        count = self._counts[operator.uid]

        def counted(values: list[Any]) -> None:
            count[0] += len(values)
            push(values)

        return counted

    def _key_groups(self, operator: PlannedOperator) -> KeyGroups:
        """Shared by all exchanges and stores of this slot: a key is encoded once."""
        return self._groups.setdefault(operator.max_parallelism, KeyGroups(operator.max_parallelism))

    def _context(self, operator: PlannedOperator) -> ReaderContext:
        place = self._place
        return ReaderContext(place.job_id, operator.uid, place.incarnation, place.slot, operator.parallelism)

    def _restore(self) -> dict[str, HashMapStore]:
        """This slot's key groups out of the checkpoint's files, the later ones winning."""
        stores: dict[str, HashMapStore] = {}
        owned: dict[str, range] = {}
        for operator in self._plan.operators:
            if operator.key_selector is not None and self._place.slot < operator.parallelism:
                stores[operator.uid] = HashMapStore(self._key_groups(operator))
                owned[operator.uid] = groups_of(self._place.slot, operator.parallelism, operator.max_parallelism)
        for handle in self._place.restore:
            with StateFile(os.path.join(self._place.directory, handle["file"]), handle["checksum"]) as file:
                for delta in file.deltas():
                    if delta.group in owned.get(delta.uid, ()):
                        table = stores[delta.uid].table(delta.name, delta.kind)
                        table.load(delta.keys, delta.values, delta.deleted)
        return stores

    # ---- running

    def run_level(self, order: LevelOrder, payloads: Iterable[bytes], send_row: SendRow) -> None:
        """Run one level of one epoch: all its input is in `payloads`, all its output goes to `send_row`."""
        self._advance(order)
        self._snapshots.check()
        self._send_row, self._sequence = send_row, 0
        if order.level == 0:
            if order.completed is not None:
                self._snapshots.completed(order.completed)
            self._read(order)
        for payload in payloads:
            _, edge = ROW.unpack_from(payload)
            self._inputs[edge](pickle.loads(memoryview(payload)[ROW.size :]))
            crash_point("slot-mid-epoch")
        for level, exchange in self._exchanges:
            if level == order.level:
                exchange.flush()
        if order.level == self._plan.levels - 1:
            self._end_epoch(order)

    def _advance(self, order: LevelOrder) -> None:
        """A slot runs every level of every epoch once, in order. Anything else means lost or repeated records."""
        epoch, level = self._position
        due = (epoch, level + 1) if level + 1 < self._plan.levels else (epoch + 1, 0)
        if (order.epoch, order.level) != due:
            raise SlotLostError(
                f"slot {self._place.slot} was asked for epoch {order.epoch} level {order.level}, but {due[0]} level {due[1]} "
                f"is due: a task was run twice or left out"
            )
        self._position = due

    def _read(self, order: LevelOrder) -> None:
        for operator, reader, emit in self._readers:
            for planned in order.ranges.get(operator.uid, ()):
                chunks = iter(reader.read(planned))
                while True:
                    try:
                        chunk = next(chunks, None)
                    except FiresteelError:
                        raise
                    except Exception as error:
                        raise OperatorFailure(operator, f"reading {json.dumps(planned)}", error) from error
                    if chunk is None:
                        break
                    emit(chunk)

    def _end_epoch(self, order: LevelOrder) -> None:
        committables: dict[str, list[Json]] = {}
        started = time.perf_counter()
        for operator, writer in self._writers:
            try:
                writer.flush()
                if order.checkpoint is not None:
                    committables[operator.uid] = writer.prepare_commit()
                    crash_point("slot-after-prepare-commit")
            except Exception as error:
                raise OperatorFailure(operator, "at the end of an epoch", error) from error
        if order.checkpoint is not None:
            persist = self._persisting(committables)
            if order.snapshot:
                self._snapshots.barrier(order.checkpoint, self._nonce, persist)
            else:
                persist()
        report = {
            "slot": self._place.slot,
            "epoch": order.epoch,
            "nonce": self._nonce,
            "records": {uid: count for uid, count in self._counts.items() if any(count)},
            "committables": committables,
            "barrier_ms": round((time.perf_counter() - started) * 1000, 3),
        }
        self._send(self._place.slot, ROW.pack(DRIVER, REPORT) + json.dumps(report).encode())
        self._nonce = uuid.uuid4().hex
        for count in self._counts.values():
            count[0] = count[1] = 0

    def _persisting(self, committables: dict[str, list[Json]]) -> Callable[[], None]:
        def persist() -> None:
            for operator, writer in self._writers:
                writer.persist(committables[operator.uid])

        return persist

    def _collect(self, values: list[Any]) -> None:
        payload = pickle.dumps(values, protocol=pickle.HIGHEST_PROTOCOL)
        self._send(self._place.slot, ROW.pack(DRIVER, COLLECTED) + payload)

    def _send(self, target: int, payload: bytes) -> None:
        address = address_of(self._sequence, self._place.slot, target, self._plan.slots)
        self._sequence += 1
        self._send_row(address, payload)

    def stop_processes(self) -> None:
        """The process is about to exit without `close`: leave no child behind. Any thread may call this."""
        self._snapshots.stop_compaction()

    def close(self) -> None:
        """End everything user code opened. Commits nothing and aborts nothing: the driver decides that."""
        for _, reader, _ in self._readers:
            reader.close()
        for _, writer in self._writers:
            writer.close()
        for function in self._functions:
            function.close()
        self._snapshots.close()


def _writing(operator: PlannedOperator, writer: SinkWriter) -> Push:
    def write(values: list[Any]) -> None:
        try:
            writer.write(values)
        except Exception as error:
            raise on_record(operator, values[0] if len(values) == 1 else values[:3], error) from error

    return write


def _nothing(values: list[Any]) -> None:
    """The input of an operator that has no subtask in this slot: never called."""
    raise SlotLostError("records arrived for an operator that does not run in this slot")


def _nowhere(address: int, payload: bytes) -> None:
    raise SlotLostError("a row was sent outside of a level")
