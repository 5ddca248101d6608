"""One function in one slot, driven call by call."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import CheckpointError, StateError
from firesteel.graph.shipping import unpack_plan
from firesteel.runtime.flow import MAX_WATERMARK, Receiver
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.place import SlotPlace
from firesteel.runtime.task import LevelOrder, SlotTask
from firesteel.state.origin import Origin
from firesteel.testing.inspection import ANY, Timer, empty_state_of, state_of, timers_of
from firesteel.testing.plans import function_program, stream_program
from firesteel.testing.recording import FUNCTION, Recorder, RecordingAssembly, TrustingAssembly, arrived
from firesteel.testing.snapshots import HarnessSnapshot, Workspace, users_own_errors


class FunctionHarness:
    """Runs a function as a job would, in this process, with time in the test's hands.

    The function is shipped the way it is to Spark's slots: it is pickled, and a copy of it runs (`h.function`). Records
    are pickled on their way in and out. What the function raises comes out of the call that made it, as it is.

    :param function: any function class that a stream takes, or a plain function together with its `kind`.
    :param kind: "map", "flat_map", "filter" or "reduce", for plain functions.
    :param key_selector: makes the stream keyed: a function or KeySelector, or a pair of them where there are two inputs.
    :param output_type: the declared type of the output, which is then checked.
    :param clock: the processing time to start at, in milliseconds. It stands still unless `set_clock` or
        `advance_clock` is called.
    :param parameters: what `get_job_parameter` knows.
    :param check_mutation: look for state and emitted records that are changed in place, after every call.
    :param restore: start with the state of a `snapshot`.
    """

    def __init__(
        self,
        function: Any,
        *,
        kind: str | None = None,
        key_selector: Any = None,
        output_type: TypeInformation | None = None,
        clock: int | None = None,
        parameters: Mapping[str, str] | None = None,
        check_mutation: bool = True,
        restore: HarnessSnapshot | None = None,
    ) -> None:
        program = function_program(function, kind, key_selector, output_type)
        self._start(program, clock, dict(parameters or {}), check_mutation, restore)

    @classmethod
    def around(
        cls,
        build: Callable[[DataStream], DataStream],
        *,
        clock: int | None = None,
        parameters: Mapping[str, str] | None = None,
        check_mutation: bool = True,
        restore: HarnessSnapshot | None = None,
    ) -> FunctionHarness:
        """A harness for an operator that is more than one function, such as windows.

        :param build: adds one operator to a stream: `lambda s: s.key_by(...).window(...).sum(1)`.
        """
        harness = cls.__new__(cls)
        harness._start(stream_program(build), clock, dict(parameters or {}), check_mutation, restore)
        return harness

    def _start(
        self,
        program: bytes,
        clock: int | None,
        parameters: dict[str, str],
        check_mutation: bool,
        restore: HarnessSnapshot | None,
    ) -> None:
        self._program, self._parameters, self._check_mutation = program, parameters, check_mutation
        self._clock = clock if clock is not None else restore.clock if restore is not None else 0
        self._epoch = 0
        self._base = self._checkpoint = restore.checkpoint if restore is not None else 0
        self._incarnation = restore.incarnation + 1 if restore is not None else 1
        self._messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._workspace = Workspace(self._incarnation)
        plan = unpack_plan(program)
        self._levels = plan.levels
        operator = next(each for each in plan.operators if each.uid == FUNCTION)
        self.function: Any = getattr(operator.operator, "function", None)
        """The copy of the function that runs."""
        place = SlotPlace(
            job_id="harness",
            slot=0,
            incarnation=self._incarnation,
            attempt=self._incarnation - 1,
            directory=self._workspace.path,
            restore=self._workspace.put(restore) if restore is not None else (),
            origin=Origin(restore.checkpoint) if restore is not None else None,
            main_classes=pickle.dumps({}),
            parameters=parameters,
            now=lambda: self._clock,
        )
        try:
            with users_own_errors():
                self._task = SlotTask(
                    plan, place, self._messages.put, RecordingAssembly if check_mutation else TrustingAssembly
                )
        except BaseException:
            self._workspace.close()
            raise
        assembly = self._task.assembly
        assert isinstance(assembly, RecordingAssembly)
        self._assembly = assembly
        self._inputs: list[Receiver] = [assembly.inputs[edge.id, 0] for edge in operator.inputs]
        self._open = True

    # ---- records

    def process(self, value: Any, timestamp: int | None = None) -> FunctionHarness:
        """Give the function a record, with or without a timestamp. Gives the harness back, so that calls can be chained."""
        if len(self._inputs) != 1:
            raise ValueError("the function has two inputs: use process1(...) and process2(...)")
        return self._process(0, [value], [timestamp])

    def process1(self, value: Any, timestamp: int | None = None) -> FunctionHarness:
        """Give the function a record of the first of two inputs."""
        return self._process(self._one_of_two(0), [value], [timestamp])

    def process2(self, value: Any, timestamp: int | None = None) -> FunctionHarness:
        """Give the function a record of the second of two inputs."""
        return self._process(self._one_of_two(1), [value], [timestamp])

    def process_all(self, values: Iterable[Any], timestamps: Iterable[int | None] | None = None) -> FunctionHarness:
        """Give the function several records as one batch, as a running job does."""
        if len(self._inputs) != 1:
            raise ValueError("the function has two inputs: use process1(...) and process2(...)")
        batch = list(values)
        return self._process(0, batch, [None] * len(batch) if timestamps is None else list(timestamps))

    def _one_of_two(self, index: int) -> int:
        if len(self._inputs) != 2:
            raise ValueError("the function has one input: use process(...)")
        return index

    def _process(self, index: int, values: list[Any], times: list[int | None]) -> FunctionHarness:
        batch = [arrived(value) for value in values]
        if len(times) != len(batch):
            raise ValueError(f"{len(batch)} records were given with {len(times)} timestamps")
        if batch:
            untimed = all(time is None for time in times)
            self._do(lambda: self._inputs[index].push(batch, None if untimed else times))
        return self

    # ---- time

    def watermark(self, timestamp: int) -> FunctionHarness:
        """Event time has come this far, on every input: timers up to it fire."""
        for receiver in self._inputs:
            self._do(lambda receiver=receiver: receiver.advance(timestamp))  # type: ignore[misc]
        return self

    def watermark1(self, timestamp: int) -> FunctionHarness:
        """Event time has come this far on the first of two inputs; the function sees the lower of both."""
        self._do(lambda: self._inputs[self._one_of_two(0)].advance(timestamp))
        return self

    def watermark2(self, timestamp: int) -> FunctionHarness:
        """Event time has come this far on the second of two inputs; the function sees the lower of both."""
        self._do(lambda: self._inputs[self._one_of_two(1)].advance(timestamp))
        return self

    def end_of_input(self) -> FunctionHarness:
        """No record follows: all event time timers fire."""
        return self.watermark(MAX_WATERMARK)

    @property
    def clock(self) -> int:
        """The processing time, in milliseconds."""
        return self._clock

    def set_clock(self, milliseconds: int) -> FunctionHarness:
        """It is that late by now: processing time timers up to it fire."""
        if milliseconds < self._clock:
            raise ValueError(f"the clock is at {self._clock} and cannot be set back to {milliseconds}")
        self._clock = milliseconds
        self._do(lambda: None)
        return self

    def advance_clock(self, milliseconds: int) -> FunctionHarness:
        """Time goes by: processing time timers that become due fire."""
        return self.set_clock(self._clock + milliseconds)

    # ---- what came out

    def output(self) -> list[Any]:
        """Everything the function emitted so far, side outputs apart."""
        return [value for value, _ in self._assembly.recording.main.records]

    def output_with_timestamps(self) -> list[tuple[Any, int | None]]:
        return list(self._assembly.recording.main.records)

    def take(self) -> list[Any]:
        """What the function emitted since the last `take`; it is forgotten, here and by `output`."""
        values = self.output()
        self._assembly.recording.main.records.clear()
        return values

    def side_output(self, tag: OutputTag | str) -> list[Any]:
        """Everything the function emitted to that side output so far."""
        return [value for value, _ in self._side(tag).records]

    def side_output_with_timestamps(self, tag: OutputTag | str) -> list[tuple[Any, int | None]]:
        return list(self._side(tag).records)

    def _side(self, tag: OutputTag | str) -> Recorder:
        return self._assembly.recording.sides.get(tag.tag_id if isinstance(tag, OutputTag) else tag, Recorder())

    def watermarks(self) -> list[int]:
        """The watermarks that were passed on."""
        return list(self._assembly.recording.main.watermarks)

    def metrics(self) -> dict[str, Any]:
        """The values of the metrics the function registered, by name."""
        return self._assembly.metrics.snapshot().get(FUNCTION, {})

    # ---- state

    def state(self, name: str, key: Any = ANY) -> Any:
        """A copy of what a state of any kind holds for a key (lists as lists, maps as dicts); without a key for all of
        them, as a dict of keys."""
        found = state_of(self._keyed, name, self._clock)
        if key is ANY:
            return found
        return found[key] if key in found else empty_state_of(self._keyed, name)

    def keys(self, name: str) -> list[Any]:
        """The keys for which a state holds something."""
        return list(state_of(self._keyed, name, self._clock))

    def timers(self, key: Any = ANY) -> list[Timer]:
        """The timers of a key, or all of them, earliest first."""
        return timers_of(self._keyed, key)

    @property
    def _keyed(self) -> KeyedState:
        if not self._assembly.keyed:
            raise StateError("the function has no state or timers: its stream is not keyed. Give a key_selector")
        return self._assembly.keyed[0]

    # ---- epochs and snapshots

    def cut(self) -> FunctionHarness:
        """End the epoch here, as a running job may do between any two records. The function must not notice."""
        self._end_epoch(None)
        return self

    def snapshot(self) -> HarnessSnapshot:
        """End the epoch with a checkpoint: what would be restored, read from real state files."""
        self._checkpoint += 1
        self._end_epoch(self._checkpoint)
        message = self._messages.get(timeout=60)
        if message["type"] != "durable":
            raise CheckpointError(f"the snapshot failed: {message['why']}")
        self._base = self._checkpoint
        return self._workspace.take(message["files"], self._checkpoint, self._incarnation, self._clock)

    def restored(self) -> FunctionHarness:
        """Take a snapshot, and give a new harness that goes on from it with a fresh copy of the function."""
        return self._again(self.snapshot())

    def _again(self, snapshot: HarnessSnapshot) -> FunctionHarness:
        other = FunctionHarness.__new__(FunctionHarness)
        other._start(self._program, None, self._parameters, self._check_mutation, snapshot)
        return other

    @classmethod
    def restore(cls, snapshot: HarnessSnapshot, function: Any, **options: Any) -> FunctionHarness:
        """A new harness with this function, which may be a newer version of the one whose state it takes over."""
        return cls(function, restore=snapshot, **options)

    def _end_epoch(self, checkpoint: int | None) -> None:
        self._epoch += 1

        def run() -> None:
            for level in range(self._levels):
                order = LevelOrder(self._epoch, level, checkpoint=checkpoint, completed=self._base or None)
                self._task.run_level(order, (), _nowhere)

        self._do(run, everything=True)
        self._assembly.recording.forget()

    def _do(self, action: Callable[[], None], *, everything: bool = False) -> None:
        if not self._open:
            raise ValueError("the harness is closed")
        if everything:
            self._check(everything=True)  # before a barrier could make a change in place look like the truth
        try:
            with users_own_errors():
                action()
                for _, timers in self._assembly.timers:
                    timers.on_clock(self._clock)
        except BaseException:
            self._assembly.recording.forget_given()
            raise
        self._check(everything=False)

    def _check(self, *, everything: bool) -> None:
        if self._check_mutation:
            self._assembly.check_state(everything=everything)
            self._assembly.recording.check(everything=everything)

    # ---- the end

    def close(self) -> None:
        """Look for changes in place a last time and close the function."""
        if self._open:
            try:
                self._check(everything=True)
            finally:
                self._shut()

    def _shut(self) -> None:
        self._open = False
        try:
            with users_own_errors():
                self._task.close()
        finally:
            self._workspace.close()

    def __enter__(self) -> FunctionHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        elif self._open:
            self._shut()


def _nowhere(address: int, payload: bytes) -> None:
    """The report at the end of an epoch, which nobody here needs."""
