"""Functions and sink writers that take part in checkpoints: given their state before they start, asked for it at every
barrier, and told what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.checkpointed_function import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    RawStateOutput,
)
from firesteel.datastream.runtime_context import KeyedStateStore
from firesteel.datastream.state import OperatorStateStore
from firesteel.errors import StateError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.failures import OperatorFailure
from firesteel.runtime.operator_state import OperatorState
from firesteel.state.files import RAW
from firesteel.state.store import Store

_RAW = "/raw"
"""The table of an operator's raw state."""
_METHODS = ("initialize_state", "snapshot_state", "notify_checkpoint_complete", "notify_checkpoint_aborted")


class InitializationContext(FunctionInitializationContext):
    def __init__(
        self,
        operator: PlannedOperator,
        restored: int | None,
        states: OperatorStateStore,
        keyed: KeyedStateStore | None,
        raw: list[bytes],
    ) -> None:
        self._operator, self._restored, self._states, self._keyed, self._raw = operator, restored, states, keyed, raw
        self._valid = True

    def is_restored(self) -> bool:
        return self._restored is not None

    def get_restored_checkpoint_id(self) -> int | None:
        return self._restored

    def get_operator_state_store(self) -> OperatorStateStore:
        self._check()
        return self._states

    def get_keyed_state_store(self) -> KeyedStateStore:
        self._check()
        if self._keyed is None:
            raise StateError(
                f"{self._operator} asks for keyed state in initialize_state(), but its stream is not keyed. Call key_by(...) "
                f"before it, or use get_operator_state_store()"
            )
        return self._keyed

    def get_raw_operator_state_inputs(self) -> list[bytes]:
        self._check()
        return list(self._raw)

    def end(self) -> None:
        self._valid = False

    def _check(self) -> None:
        if not self._valid:
            raise StateError(
                f"{self._operator} uses the context of initialize_state() after that call: ask for all states in it and "
                f"keep those"
            )


class SnapshotContext(FunctionSnapshotContext, RawStateOutput):
    def __init__(self, operator: PlannedOperator, checkpoint: int, timestamp: int) -> None:
        self._operator, self._checkpoint, self._timestamp = operator, checkpoint, timestamp
        self._partitions: list[bytearray] = []
        self._valid = True

    def get_checkpoint_id(self) -> int:
        return self._checkpoint

    def get_checkpoint_timestamp(self) -> int:
        return self._timestamp

    def get_raw_operator_state_output(self) -> RawStateOutput:
        return self

    def write(self, data: bytes) -> None:
        self._check()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise StateError(f"raw state of {self._operator} is bytes, not {data!r:.200}: serialise it first")
        if not self._partitions:
            self._partitions.append(bytearray())
        self._partitions[-1] += data

    def start_new_partition(self) -> None:
        self._check()
        self._partitions.append(bytearray())

    def end(self) -> list[bytes]:
        """The partitions that were written. One that was begun and is empty counts."""
        self._valid = False
        return [bytes(partition) for partition in self._partitions]

    def _check(self) -> None:
        if not self._valid:
            raise StateError(f"{self._operator} writes raw state outside of snapshot_state(): it would be lost")


class Participant:
    """Someone of this slot who takes part in checkpoints. Methods that it does not define are left out.

    :param target: a CheckpointedFunction, a function with methods of a CheckpointListener, or a sink's writer.
    """

    def __init__(self, operator: PlannedOperator, target: Any, states: OperatorState, store: Store) -> None:
        self._operator, self._target, self._states, self._store = operator, target, states, store

    def initialize(self, restored: int | None, keyed: KeyedStateStore | None) -> None:
        """
        :param restored: the checkpoint that the job goes on from.
        """
        call = getattr(self._target, "initialize_state", None)
        if call is not None:
            raw = self._store.operator_list_table(_RAW, RAW).content() if _RAW in self._store.operator_tables() else []
            context = InitializationContext(self._operator, restored, self._states, keyed, raw)
            self._do("in initialize_state()", lambda: call(context))
            context.end()

    def snapshot(self, checkpoint: int, timestamp: int) -> None:
        call = getattr(self._target, "snapshot_state", None)
        if call is not None:
            context = SnapshotContext(self._operator, checkpoint, timestamp)
            self._do("in snapshot_state()", lambda: call(context))
            raw = context.end()
            if raw or _RAW in self._store.operator_tables():
                table = self._store.operator_list_table(_RAW, RAW)
                if table.content() != raw:
                    table.update(raw)

    def completed(self, checkpoint: int) -> None:
        self._notify("notify_checkpoint_complete", checkpoint)

    def aborted(self, checkpoint: int) -> None:
        self._notify("notify_checkpoint_aborted", checkpoint)

    def _notify(self, method: str, checkpoint: int) -> None:
        call = getattr(self._target, method, None)
        if call is not None:
            self._do(f"in {method}()", lambda: call(checkpoint))

    def _do(self, where: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:
            raise OperatorFailure(self._operator, where, error) from error


def takes_part(function: Any) -> bool:
    """Whether an operator's function has anything to do with checkpoints."""
    return any(callable(getattr(function, method, None)) for method in _METHODS)


class Barriers:
    """What became of the barriers this slot has taken part in. One checkpoint is on its way at a time, so when another
    barrier is ordered, the one before it is either complete or was dropped."""

    def __init__(self, participants: list[Participant]) -> None:
        self._participants = participants
        self._open: list[int] = []

    def ordered(self, completed: int | None, barrier: int | None) -> None:
        """An epoch begins: the newest completed checkpoint, and the barrier that the epoch ends with."""
        if not self._open:
            return
        if completed is not None and completed in self._open:
            self._resolve([number for number in self._open if number < completed], completed)
            self._open = [number for number in self._open if number > completed]
        if barrier is not None:
            self._resolve(self._open, None)
            self._open = []

    def taken(self, barrier: int) -> None:
        if self._participants:
            self._open.append(barrier)

    def _resolve(self, aborted: list[int], completed: int | None) -> None:
        for participant in self._participants:
            for number in aborted:
                participant.aborted(number)
            if completed is not None:
                participant.completed(completed)
