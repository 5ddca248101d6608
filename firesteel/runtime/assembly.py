"""Building a slot: subtask i of every operator, compiled and joined to its neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from firesteel.common.conform import conformer
from firesteel.common.typecheck import checker
from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import Json, ReaderContext, SinkWriter, SourceReader
from firesteel.datastream.functions import Function
from firesteel.errors import TypeMismatchError
from firesteel.graph import nodes
from firesteel.graph.keys import KeyGroups
from firesteel.graph.plan import JobPlan, PlannedEdge, PlannedOperator
from firesteel.metrics import SlotMetrics
from firesteel.runtime.broadcast import BroadcastStates, ReadOnlyContext
from firesteel.runtime.callables import resolve_partitioner, resolve_selector
from firesteel.runtime.context import FunctionContext, SlotRuntimeContext
from firesteel.runtime.edges import create_exchange
from firesteel.runtime.exchange import Exchange, Send
from firesteel.runtime.failures import OperatorFailure, on_record
from firesteel.runtime.flow import Channel, Emitter, Gate, Partials, Push, Receiver, Times, Values
from firesteel.runtime.interval_join import IntervalJoiner
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.operator_state import OperatorState
from firesteel.runtime.operators import Operation, compile_operator
from firesteel.runtime.own import OwnBatches
from firesteel.runtime.participants import Participant, takes_part
from firesteel.runtime.place import SlotPlace
from firesteel.runtime.restoring import restore_state
from firesteel.runtime.sharing import keeps, receivers
from firesteel.runtime.snapshots import KeyedStore
from firesteel.runtime.timers import Timers, UnkeyedTimerService
from firesteel.runtime.timestamps import Timestamper
from firesteel.runtime.windows.aligned import AlignedWindowOperator
from firesteel.runtime.windows.choice import window_operator
from firesteel.runtime.windows.operator import WindowOperator
from firesteel.runtime.windows.waiting import Waiting
from firesteel.state.files import UNION
from firesteel.state.hashmap import HashMapStore
from firesteel.state.native import NativeState
from firesteel.state.operator import OperatorListTable
from firesteel.state.store import Store

TIME = "/time"
"""The table of an operator's watermarks, which belong to its subtask and to no key."""
SPLITS = "/splits"
"""The table of a source's watermarks that belong to its splits, and go with them to whichever subtask reads them."""


@dataclass(frozen=True)
class Reading:
    """A source in this slot: chunks of its reader go to `target`, those for a side output to `emitter`."""

    operator: PlannedOperator
    reader: SourceReader
    target: Receiver
    emitter: Emitter


@dataclass(frozen=True)
class Writing:
    """A sink in this slot."""

    operator: PlannedOperator
    writer: SinkWriter


class Frame(Protocol):
    """A half of `transform_dataframe` in this slot (runtime/frames.py)."""

    operator: PlannedOperator

    def begin(self, directory: str | None, ranges: list[Json]) -> None: ...

    def finish(self) -> str | None: ...


class Assembly:
    """Everything of one slot, ready to run."""

    def __init__(self, plan: JobPlan, place: SlotPlace, send: Send, collect: Push) -> None:
        self._plan, self._place, self._send, self._collect = plan, place, send, collect
        self.counts: dict[str, list[int]] = {operator.uid: [0, 0] for operator in plan.operators}
        self.metrics = SlotMetrics()
        self.readings: list[Reading] = []
        self.writings: list[Writing] = []
        self.frames: list[Frame] = []  # of transform_dataframe
        self.exchanges: list[tuple[int, Exchange]] = []
        self.own = OwnBatches()
        self.timestampers: list[tuple[int, Timestamper]] = []
        self.timers: list[tuple[int, Timers]] = []
        self.keyed: list[KeyedState] = []
        self.functions: list[Function] = []
        self.participants: list[Participant] = []
        self.stores: list[KeyedStore] = []
        self.inputs: dict[tuple[int, int], Channel] = {}  # (edge, upstream slot) -> the channel it ends in
        self._times: list[tuple[PlannedOperator, Store, Any]] = []  # whatever has watermarks to save
        self._operations: dict[int, tuple[Operation, Gate]] = {}
        self._services: dict[int, Any] = {}  # the timer services, which know the current watermark
        self._windowed: dict[int, WindowOperator] = {}
        self._waiting: dict[int, Waiting] = {}  # of window operators that have a subtask here
        self._groups: dict[int, KeyGroups] = {}
        self.restored = restore_state(plan, place, self._create_store)
        try:
            for operator in reversed(plan.operators):
                if place.slot < operator.parallelism:
                    self._build(operator, self.restored.stores[operator.uid])
        except BaseException:
            self.restored.discard()
            raise

    # ---- watermarks as state

    def save(self) -> None:
        """Put watermarks, and what waits to be sent, into their stores: once, at a barrier."""
        for waiting in self._waiting.values():
            waiting.save()
        for _, store, timed in self._times:
            saved, table, name = timed.snapshot(), store.subtask_table(TIME), type(timed).__name__
            if saved or table.get(name):  # nothing to save may be news
                table.put(name, saved)

    def _timed(self, operator: PlannedOperator, store: Store, timed: Any) -> None:
        saved = store.subtask_table(TIME).get(type(timed).__name__)
        origin = self._place.origin
        # what a subtask has seen says nothing about the records that it gets when these are divided in another way
        if saved and (origin is None or not origin.rescaled):
            timed.restore(saved)
        self._times.append((operator, store, timed))

    # ---- building

    def _build(self, operator: PlannedOperator, store: Store) -> None:
        emitter = self._emitter(operator)
        self.stores.append(KeyedStore(operator.uid, store))
        if isinstance(operator.operator, nodes.Read):
            self._build_source(operator, operator.operator, store, emitter)
            return
        operation = self._operation(operator, store, emitter)
        gate = Gate(operation.advance, operation.idle)
        self._operations[operator.id] = operation, gate
        for index, edge in enumerate(operator.inputs):
            if not edge.direct:
                upstream = self._plan.operator(edge.upstream)
                for subtask in range(upstream.parallelism):
                    if self._place.slot in edge.targets(subtask, upstream.parallelism, operator.parallelism):
                        self.inputs[edge.id, subtask] = self._channel(operator, edge, f"{index}/{subtask}")
            else:
                self.inputs[edge.id, self._place.slot] = self._channel(operator, edge, f"{index}/{self._place.slot}")
        self._timed(operator, store, gate)
        if operator.id in self._services:
            self._services[operator.id].watermark = gate.watermark  # what functions see of a restored watermark
        if operator.id in self._windowed:
            self.counts[operator.uid][0] += self._windowed[operator.id].restored()

    def _channel(self, operator: PlannedOperator, edge: PlannedEdge, name: str) -> Channel:
        operation, gate = self._operations[operator.id]
        count, push, take = self.counts[operator.uid], operation.ports[edge.port], operation.take

        def counted(values: Values, times: Times) -> None:
            count[0] += len(values)
            push(values, times)

        def taken(partials: Partials) -> None:
            assert take is not None
            count[0] += partials[3]
            take(partials)

        return gate.channel(name, counted, take and taken)

    def _build_source(self, operator: PlannedOperator, read: nodes.Read, store: Store, emitter: Emitter) -> None:
        target: Receiver = emitter
        if read.strategy is not None:
            shared = store.operator_list_table(SPLITS, UNION)
            target = self._timestamper(operator, read.strategy, store, emitter, shared)
        reader = read.source.create_reader(self._context(operator))
        self.readings.append(Reading(operator, reader, target, emitter))

    def _timestamper(
        self,
        operator: PlannedOperator,
        strategy: Any,
        store: Store,
        emitter: Emitter,
        shared: OperatorListTable | None = None,
    ) -> Timestamper:
        sources, place = self._plan.origins(operator), self._place
        timestamper = Timestamper(operator, strategy, sources, emitter, place.now, shared, first=place.slot == 0)
        self.timestampers.append((operator.level, timestamper))
        self._timed(operator, store, timestamper)
        return timestamper

    def _operation(self, operator: PlannedOperator, store: Store, emitter: Emitter) -> Operation:
        kind = operator.operator
        if isinstance(kind, nodes.Collect):
            return Operation([self._collect], emitter.advance, emitter.idle)
        if isinstance(kind, nodes.Write):
            writer = kind.sink.create_writer(self._context(operator))
            self.writings.append(Writing(operator, writer))
            self._participate(operator, writer, OperatorState(operator, store), store, None)
            return Operation([_writing(operator, writer)], emitter.advance, emitter.idle)
        if isinstance(kind, nodes.ToFrame):
            from firesteel.runtime.frames import FrameInput  # Arrow is a large library, and few slots need it

            frame = FrameInput(operator, kind.transform, self._context(operator))
            self.frames.append(frame)
            return Operation([frame.push], emitter.advance, emitter.idle)
        if isinstance(kind, nodes.FromFrame):
            from firesteel.runtime.frames import FrameOutput

            self.frames.append(FrameOutput(operator, emitter))
            return Operation([emitter.push], emitter.advance, emitter.idle)
        if isinstance(kind, nodes.AssignTimestamps):
            timestamper = self._timestamper(operator, kind.strategy, store, emitter)
            return Operation([timestamper.push], timestamper.advance, timestamper.idle)
        if isinstance(kind, nodes.IntervalJoin):
            return self._interval_join(operator, kind, store, emitter)
        keyed = timers = None
        if operator.keyed:
            keyed = KeyedState(store, self._place.now)
            self.keyed.append(keyed)
        if isinstance(kind, nodes.Window):
            assert keyed is not None
            return self._windows(operator, kind, keyed, emitter)
        if keyed is not None and isinstance(kind, nodes.Process | nodes.CoProcess | nodes.BroadcastProcess):
            timers = Timers(operator, kind.function.on_timer, keyed, emitter, self._place.now)
            self.timers.append((operator.level, timers))
            context = timers.context
        else:
            context = FunctionContext(keyed, UnkeyedTimerService(operator, self._place.now))
        states, broadcast = OperatorState(operator, store), None
        if isinstance(kind, nodes.BroadcastProcess):
            broadcast = BroadcastStates(operator, states)
            context = ReadOnlyContext(keyed, context.timer_service(), broadcast)
            if timers is not None:
                timers.context = context
        self._open(operator, keyed, states, store)
        self._services[operator.id] = context.timer_service()
        return compile_operator(operator, keyed, timers, context, emitter, broadcast)

    def _windows(self, operator: PlannedOperator, kind: nodes.Window, keyed: KeyedState, emitter: Emitter) -> Operation:
        context = self._open(operator, keyed, OperatorState(operator, keyed.store), keyed.store)
        windows = window_operator(operator, kind, keyed, context, emitter, self._place.now)
        self.timers.append((operator.level, windows.timers))
        self._windowed[operator.id] = windows
        if kind.pre_combine:
            self._waiting[operator.id] = Waiting(keyed.store)
        self._services[operator.id] = windows.timers.service
        take = windows.take if isinstance(windows, AlignedWindowOperator) else None
        return Operation([windows.push], windows.timers.advance, emitter.idle, take)

    def _interval_join(
        self, operator: PlannedOperator, join: nodes.IntervalJoin, store: Store, emitter: Emitter
    ) -> Operation:
        keyed = KeyedState(store, self._place.now)
        self.keyed.append(keyed)
        joiner = IntervalJoiner(operator, join, keyed, emitter, self.metrics.group(operator.uid))
        timers = Timers(operator, joiner.expire, keyed, emitter, self._place.now)
        self.timers.append((operator.level, timers))
        self._open(operator, keyed, OperatorState(operator, store), store)
        self._services[operator.id] = timers.service
        return Operation(joiner.ports(timers.service), timers.advance, emitter.idle)

    def _participate(
        self,
        operator: PlannedOperator,
        target: Any,
        states: OperatorState,
        store: Store,
        keyed: SlotRuntimeContext | None,
    ) -> None:
        origin = self._place.origin
        participant = Participant(operator, target, states, store)
        participant.initialize(origin.checkpoint if origin is not None else None, keyed)
        self.participants.append(participant)

    def _open(
        self, operator: PlannedOperator, keyed: KeyedState | None, states: OperatorState, store: Store
    ) -> SlotRuntimeContext:
        context = SlotRuntimeContext(
            operator,
            self._context(operator),
            self._place.attempt,
            keyed,
            self.metrics.group(operator.uid),
            self._place.parameters,
        )
        if takes_part(getattr(operator.operator, "function", None)):
            function = operator.operator.function  # type: ignore[union-attr]
            self._participate(operator, function, states, store, context if keyed is not None else None)
        functions = [getattr(operator.operator, name, None) for name in ("combine", "function")]
        selectors = [edge.key_selector for edge in operator.inputs]
        for function in (*functions, *selectors):
            if isinstance(function, Function) and not any(function is known for known in self.functions):
                try:
                    function.open(context)
                except Exception as error:
                    raise OperatorFailure(operator, "in open()", error) from error
                self.functions.append(function)
        return context

    def _emitter(self, operator: PlannedOperator) -> Emitter:
        copying = not operator.object_reuse
        emitter = self._create_emitter(operator, _checked(operator, operator.output_type))
        outputs: dict[str | None, list[tuple[Receiver, bool]]] = {}
        for edge in self._plan.outputs(operator):
            outputs.setdefault(edge.side, []).append((self._reader(operator, edge), copying and edge.direct))
            emitter.separate |= copying and edge.direct
        if isinstance(operator.operator, nodes.Read) and operator.operator.source.fresh:
            match outputs.get(None):
                case [(Exchange() as exchange, _)]:
                    exchange.alone = True
        for side, readers in outputs.items():
            output = emitter
            if side is not None:
                output = emitter.add_side(side, _checked(operator, operator.side_types.get(side)))
            for receiver in receivers(readers, keeps(operator.operator)):
                output.add(receiver)
        return emitter

    def _create_emitter(self, operator: PlannedOperator, check: Callable[[Values], Values] | None) -> Emitter:
        return Emitter(self.counts[operator.uid], check)

    def _reader(self, operator: PlannedOperator, edge: PlannedEdge) -> Receiver:
        """Who gets this edge's records: the operator itself, which is built already, or an exchange."""
        if edge.direct:
            return self.inputs[edge.id, self._place.slot]
        downstream = self._plan.operator(edge.downstream)
        selector = resolve_selector(edge.key_selector) if edge.key_selector is not None else None
        partition = resolve_partitioner(edge.partitioner) if edge.partitioner is not None else None
        groups, restored = self._key_groups(downstream), self._place.origin is not None
        waiting, slot = self._waiting.get(downstream.id), self._place.slot
        exchange = create_exchange(
            edge, operator, downstream, slot, self._send, self.own, selector, partition, groups, restored, waiting
        )
        self.exchanges.append((operator.level, exchange))
        return exchange

    def _key_groups(self, operator: PlannedOperator) -> KeyGroups:
        """Shared by all exchanges and stores of this slot: a key is encoded once."""
        return self._groups.setdefault(operator.max_parallelism, KeyGroups(operator.max_parallelism))

    def _context(self, operator: PlannedOperator) -> ReaderContext:
        place = self._place
        return ReaderContext(
            place.job_id,
            operator.uid,
            place.incarnation,
            place.slot,
            operator.parallelism,
            place.directory,
            self.metrics.group(operator.uid),
        )

    def _create_store(self, operator: PlannedOperator, native: NativeState | None) -> Store:
        key_groups = self._key_groups(operator)
        return HashMapStore(key_groups) if native is None else native.store(operator.uid, key_groups)


def _checked(operator: PlannedOperator, declared: TypeInformation | None) -> Callable[[Values], Values] | None:
    """Verify what an operator gives out against its declared type."""
    check, conform = checker(declared), conformer(declared)
    if check is None:
        return None

    def checked(values: Values) -> Values:
        try:
            check(values)
        except TypeMismatchError as error:
            raise on_record(operator, error.record, error) from error
        return values if conform is None else conform(values)

    return checked


def _writing(operator: PlannedOperator, writer: SinkWriter) -> Push:
    def write(values: Values, times: Times) -> None:
        try:
            writer.write(values)
        except TypeMismatchError as error:
            raise on_record(operator, error.record, error) from error
        except Exception as error:
            raise on_record(operator, values[0] if len(values) == 1 else values[:3], error) from error

    return write
