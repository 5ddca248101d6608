"""Everything that runs in one slot: subtask i of every operator, built once and run level by level.

No sockets and no Spark: `send` takes the rows it makes, so the same code runs under a test harness in one process.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Aside, Json, SourceReader, Timestamped
from firesteel.errors import FiresteelError, SideOutputError, SlotLostError
from firesteel.graph.plan import JobPlan
from firesteel.runtime.assembly import Assembly, Reading
from firesteel.runtime.exchange import receive
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.flow import MAX_WATERMARK, Batch, Channel, Times, Values
from firesteel.runtime.participants import Barriers
from firesteel.runtime.place import SlotPlace
from firesteel.runtime.savepoints import SavepointWriter
from firesteel.runtime.snapshots import Snapshots, Tell
from firesteel.runtime.split_watermarks import WHOLE
from firesteel.runtime.timestamps import Timestamper
from firesteel.runtime.wire import COLLECTED, DRIVER, FRAME, REPORT, ROW, address_of

SendRow = Callable[[int, bytes], None]

MAX_HELD_BYTES = 16 << 20
"""How much of a level's output waits in the slot for the level's turn, about."""


@dataclass(frozen=True)
class LevelOrder:
    """What the driver orders: run this level of this epoch."""

    epoch: int
    level: int
    ranges: dict[str, list[Json]] = field(default_factory=dict)  # source uid -> this slot's ranges
    checkpoint: int | None = None  # the barrier at the epoch's end
    snapshot: bool = True  # whether that barrier snapshots state, or only commits sinks
    whole: bool = False  # whether that snapshot is of everything, and not of what changed
    completed: int | None = None  # the newest completed checkpoint
    caught_up: Sequence[str] = ()  # sources that have nothing more to give for now
    ended: Sequence[str] = ()  # sources that never will have
    held_back: Sequence[str] = ()  # sources that are not read because they are ahead of others
    over: bool = False  # the input had ended before this start, and nothing is new: the clock fires no timers
    splits: dict[str, list[str]] = field(default_factory=dict)  # source uid -> the splits this slot has afterwards
    frames: str | None = None  # where files of this epoch's DataFrames go


class SlotTask:
    """One slot's operators, state and connections."""

    def __init__(self, plan: JobPlan, place: SlotPlace, tell: Tell, assemble: type[Assembly] = Assembly) -> None:
        self._plan = plan
        self._place = place
        self._due = (1, 0)  # the epoch and level this slot runs next
        self._nonce = uuid.uuid4().hex
        self._send_row: SendRow = _nowhere
        self._sequence = 1  # of the level's next row
        self._held: list[tuple[int, bytes]] = []  # rows of a level that has begun before its turn
        self._held_bytes = 0
        self.assembly = assemble(plan, place, self._send, self._collect)
        self._native = self.assembly.restored.native
        self._barriers = Barriers(self.assembly.participants)
        self._snapshots = Snapshots(
            place.storage,
            place.incarnation,
            place.slot,
            self.assembly.stores,
            self.assembly.restored.chain,
            place.main_classes,
            tell,
            place.max_state_size,
            self._native,
        )
        self._savepoints = SavepointWriter(place.storage, place.slot, place.main_classes, tell)

    # ---- running

    def begin_level(self, order: LevelOrder) -> None:
        """Begin with what this slot has sent to itself, while Spark is still carrying the rest of the level's input.

        Not if an input is idle: that it no longer is may be on its way, and is heard before anything else.
        """
        parts = self.assembly
        if parts.frames or any(channel.is_idle for channel in parts.inputs.values()):
            return
        self._send_row = self._hold
        self._look_at_clock(order)
        for channel, batch in self._own_input(order.level):
            self._receive(order, channel, batch)
            if self._held_bytes > MAX_HELD_BYTES:
                return

    def run_level(self, order: LevelOrder, payloads: Iterable[bytes], send_row: SendRow) -> None:
        """Run one level of one epoch: all its input is in `payloads` or here already, all its output goes to `send_row`."""
        self._advance(order)
        self._snapshots.check()
        self._send_row = send_row
        self._send_held()
        parts = self.assembly
        if parts.frames:
            self._begin_frames(order)
        self._look_at_clock(order)
        if order.level == 0:
            if order.completed is not None:
                self._snapshots.completed(order.completed)
            self._barriers.ordered(order.completed, order.checkpoint)
            self._read(order)
        for channel, batch in self._input(order.level, payloads):
            self._receive(order, channel, batch)
        for level, timestamper in parts.timestampers:
            if level == order.level:
                if timestamper.sources.issubset(order.caught_up):
                    timestamper.caught_up()
                elif not timestamper.sources.isdisjoint(order.held_back):
                    timestamper.held_back()
        for level, exchange in parts.exchanges:
            if level == order.level:
                exchange.flush(barrier=order.checkpoint is not None and order.snapshot)
        if parts.frames:
            self._send_frames(order.level)
        if order.level == self._plan.levels - 1:
            self._end_epoch(order)
        self._sequence = 1

    def _receive(self, order: LevelOrder, channel: Channel, batch: Batch) -> None:
        receive(batch, channel)
        crash_point("slot-mid-epoch")
        if self._native is not None:
            self._native.settle()
        self._look_at_clock(order)

    def _look_at_clock(self, order: LevelOrder) -> None:
        if not order.over:
            for level, timers in self.assembly.timers:
                if level == order.level:
                    timers.on_clock(self._place.now())

    def _hold(self, address: int, payload: bytes) -> None:
        self._held.append((address, payload))
        self._held_bytes += len(payload)

    def _send_held(self) -> None:
        for row in self._held:
            self._send_row(*row)
        self._held.clear()
        self._held_bytes = 0

    def _input(self, level: int, payloads: Iterable[bytes]) -> Iterator[tuple[Channel, Batch]]:
        inputs, rows = self.assembly.inputs, iter(payloads)
        for payload in rows:
            _, edge, upstream = ROW.unpack_from(payload)
            if len(payload) > ROW.size:
                rows = chain((payload,), rows)
                break
            inputs[edge, upstream].idle(False)
        yield from self._own_input(level)
        for payload in rows:
            _, edge, upstream = ROW.unpack_from(payload)
            yield inputs[edge, upstream], pickle.loads(memoryview(payload)[ROW.size :])

    def _own_input(self, level: int) -> Iterator[tuple[Channel, Batch]]:
        for edge, batch in self.assembly.own.take(level):
            yield self.assembly.inputs[edge, self._place.slot], batch

    def _begin_frames(self, order: LevelOrder) -> None:
        for frame in self.assembly.frames:  # those downstream first, so that they are ready for what others give out
            if frame.operator.level == order.level:
                frame.begin(order.frames, order.ranges.get(frame.operator.uid, []))

    def _send_frames(self, level: int) -> None:
        for frame in self.assembly.frames:
            if frame.operator.level == level and (file := frame.finish()) is not None:
                row = json.dumps({"operator": frame.operator.id, "file": file}).encode()
                self._send(self._place.slot, ROW.pack(DRIVER, FRAME, self._place.slot) + row)

    def expect(self, epoch: int, level: int) -> None:
        """Somebody has come for that level: right if it is the next one, or the first one of an epoch that is still to come.

        :raises SlotLostError: a slot runs every level of every epoch once, in order. Anything else means lost or repeated
            records.
        """
        if (epoch, level) != self._due and (level or epoch <= self._due[0]):
            raise self._disorder(epoch, level)

    def _advance(self, order: LevelOrder) -> None:
        if (order.epoch, order.level) != self._due:
            raise self._disorder(order.epoch, order.level)
        epoch, level = self._due
        self._due = (epoch, level + 1) if level + 1 < self._plan.levels else (epoch + 1, 0)

    def _disorder(self, epoch: int, level: int) -> SlotLostError:
        return SlotLostError(
            f"slot {self._place.slot} was asked for epoch {epoch} level {level}, but {self._due[0]} level {self._due[1]} "
            f"is due: a task was run twice or left out"
        )

    def _read(self, order: LevelOrder) -> None:
        for reading in self.assembly.readings:  # before any is read, or one that was idle finds event time ahead of it
            uid = reading.operator.uid
            if order.ranges.get(uid) and isinstance(reading.target, Timestamper):
                self._expect(reading.reader, reading.target, order.ranges[uid], order.splits.get(uid))
        for reading in self.assembly.readings:
            uid = reading.operator.uid
            ranges, splits = order.ranges.get(uid, []), order.splits.get(uid)
            if splits is not None and isinstance(reading.target, Timestamper):
                self._read_splits(reading, reading.target, ranges, splits)
            else:
                for planned in ranges:
                    self._read_range(reading, planned)
                if splits is not None:
                    reading.target.idle(not splits)
            if uid in order.ended:
                reading.target.advance(MAX_WATERMARK)

    def _expect(
        self, reader: SourceReader, timestamper: Timestamper, ranges: list[Json], left: list[str] | None
    ) -> None:
        """
        :param left: the splits that are not finished with these ranges. None: the source has no splits.
        """
        first = [WHOLE]
        if left is not None:
            side_by_side = reader.side_by_side
            first = list(chain.from_iterable(map(reader.splits_of, ranges if side_by_side else ranges[:1])))
            timestamper.keep([*first, *left] if side_by_side else first)
        timestamper.expect(first)

    def _read_splits(self, reading: Reading, timestamper: Timestamper, ranges: list[Json], left: list[str]) -> None:
        """Read ranges of splits that have watermarks of their own.

        :param left: the splits that are not finished with these ranges.
        """
        reader = reading.reader
        splits = [reader.splits_of(planned) for planned in ranges]
        names = list(chain.from_iterable(splits))
        for of, planned in zip(splits, ranges, strict=True):
            if not reader.side_by_side:
                timestamper.keep(of)
            timestamper.read_from(of[0])
            self._read_range(reading, planned, timestamper if len(of) > 1 else None)
        timestamper.keep(left)
        if names:
            timestamper.was_read(names)
        elif reader.side_by_side and WHOLE not in left:
            timestamper.emit()  # those that have something are read in every epoch, so for now this is all there is

    def _read_range(self, reading: Reading, planned: Json, by_split: Timestamper | None = None) -> None:
        """
        :param by_split: where it has to be said of which split records are.
        """
        chunks = iter(reading.reader.read(planned))
        while True:
            try:
                chunk = next(chunks, None)
            except FiresteelError:
                raise
            except Exception as error:
                raise OperatorFailure(reading.operator, f"reading {json.dumps(planned)}", error) from error
            if chunk is None:
                return
            if isinstance(chunk, Timestamped):
                if by_split is not None and chunk.split is not None:
                    by_split.read_from(chunk.split)
                reading.target.push(chunk.values, chunk.times)
            elif isinstance(chunk, Aside):
                if chunk.tag_id not in reading.emitter.tags:
                    raise SideOutputError(
                        f"{reading.operator} has records for the side output {chunk.tag_id!r}, which nobody reads: call "
                        f"get_side_output(...) on its stream"
                    )
                reading.emitter.push_side(chunk.tag_id, chunk.values, chunk.times)
            else:
                reading.target.push(chunk, None)

    def _end_epoch(self, order: LevelOrder) -> None:
        committables: dict[str, list[Json]] = {}
        started = time.perf_counter()
        for writing in self.assembly.writings:
            try:
                writing.writer.flush()
                if order.checkpoint is not None:
                    committables[writing.operator.uid] = writing.writer.prepare_commit()
                    crash_point("slot-after-prepare-commit")
            except Exception as error:
                raise OperatorFailure(writing.operator, "at the end of an epoch", error) from error
        for keyed in self.assembly.keyed:
            keyed.clean_up()
        if not self._place.checkpointing:
            for store in self.assembly.stores:
                store.store.forget_changes()
        if order.checkpoint is not None:
            persist = self._persisting(committables)
            if order.snapshot:
                self.assembly.save()
                for participant in self.assembly.participants:
                    participant.snapshot(order.checkpoint, self._place.now())
                self._barriers.taken(order.checkpoint)
                self._snapshots.barrier(order.checkpoint, self._nonce, persist, whole=order.whole)
            else:
                persist()
        counts = self.assembly.counts
        report = {
            "slot": self._place.slot,
            "epoch": order.epoch,
            "checkpoint": order.checkpoint,
            "nonce": self._nonce,
            "records": {uid: count for uid, count in counts.items() if any(count)},
            "committables": committables,
            "wake": self._wake(),
            "watermarks": {
                reading.operator.uid: (reading.target.reached, reading.target.is_idle)
                for reading in self.assembly.readings
                if isinstance(reading.target, Timestamper)
            },
            "metrics": self.assembly.metrics.snapshot(),
            "barrier_ms": round((time.perf_counter() - started) * 1000, 3),
        }
        self._send(self._place.slot, ROW.pack(DRIVER, REPORT, self._place.slot) + json.dumps(report).encode())
        self._nonce = uuid.uuid4().hex
        for count in counts.values():
            count[0] = count[1] = 0

    def _wake(self) -> int | None:
        """When the next epoch is needed even if there is no input: a timer, or a source that may have fallen idle."""
        parts = self.assembly
        times = [each.wake() for _, each in parts.timers] + [each.wake() for _, each in parts.timestampers]
        return min((time for time in times if time is not None), default=None)

    def _persisting(self, committables: dict[str, list[Json]]) -> Callable[[], None]:
        def persist() -> None:
            for writing in self.assembly.writings:
                writing.writer.persist(committables[writing.operator.uid])

        return persist

    def _collect(self, values: Values, times: Times) -> None:
        payload = pickle.dumps(values, protocol=pickle.HIGHEST_PROTOCOL)
        self._send(self._place.slot, ROW.pack(DRIVER, COLLECTED, self._place.slot) + payload)

    def _send(self, target: int, payload: bytes, *, first: bool = False) -> None:
        """
        :param first: before everything else of the level, also of other slots.
        """
        self._send_row(address_of(0 if first else self._sequence, self._place.slot, target, self._plan.slots), payload)
        self._sequence += not first

    def order(self, message: dict[str, Any]) -> None:
        """Something to do that is no part of an epoch, as the driver says over the control connection."""
        if message["type"] == "savepoint":
            self._savepoints.write(message)
        elif message["type"] == "savepoint-dropped":
            self._savepoints.drop(message["savepoint"])

    def stop_processes(self) -> None:
        """The process is about to exit without `close`: leave nothing behind. Any thread may call this."""
        self._snapshots.stop_compaction()
        self._savepoints.kill()
        if self._native is not None:
            self._native.discard()

    def close(self) -> None:
        """End everything user code opened. Commits nothing and aborts nothing: the driver decides that."""
        parts = self.assembly
        for reading in parts.readings:
            reading.reader.close()
        for writing in parts.writings:
            writing.writer.close()
        for function in parts.functions:
            function.close()
        self._savepoints.close()
        self._snapshots.close()
        if self._native is not None:
            self._native.close()


def _nowhere(address: int, payload: bytes) -> None:
    raise SlotLostError("a row was sent outside of a level")
