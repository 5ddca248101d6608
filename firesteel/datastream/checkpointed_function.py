"""Functions that take part in checkpoints: with state of their own that belongs to a subtask, not to a key."""

from __future__ import annotations

from abc import ABC, abstractmethod

from firesteel.datastream.runtime_context import KeyedStateStore
from firesteel.datastream.state import OperatorStateStore


class RawStateOutput(ABC):
    """Where a function writes state as bytes. What is written at a checkpoint replaces what was before."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Add bytes to the current partition."""

    @abstractmethod
    def start_new_partition(self) -> None:
        """Begin another partition. When the parallelism changes, partitions are what subtasks are given, as a whole."""


class FunctionInitializationContext(ABC):
    """What `initialize_state` is given; valid during the call only."""

    @abstractmethod
    def is_restored(self) -> bool:
        """Whether the job goes on from a checkpoint. The states hold what they held then; those new to it are empty."""

    @abstractmethod
    def get_restored_checkpoint_id(self) -> int | None:
        """The checkpoint the job goes on from, None when there is none."""

    @abstractmethod
    def get_operator_state_store(self) -> OperatorStateStore: ...

    @abstractmethod
    def get_keyed_state_store(self) -> KeyedStateStore:
        """State by key, which only functions of keyed streams have."""

    @abstractmethod
    def get_raw_operator_state_inputs(self) -> list[bytes]:
        """The partitions that were written as raw state at the checkpoint; this subtask's part of them."""


class FunctionSnapshotContext(ABC):
    """What `snapshot_state` is given; valid during the call only."""

    @abstractmethod
    def get_checkpoint_id(self) -> int: ...

    @abstractmethod
    def get_checkpoint_timestamp(self) -> int:
        """When this subtask reached the checkpoint's barrier, in milliseconds since 1970."""

    @abstractmethod
    def get_raw_operator_state_output(self) -> RawStateOutput: ...


class CheckpointedFunction(ABC):
    """To be derived from in addition to a function's own class: `class Buffering(SinkFunction, CheckpointedFunction)`.

    Operator state is asked for in `initialize_state`. What the function keeps in attributes goes into it in
    `snapshot_state`; it may as well use the state all the time.
    """

    @abstractmethod
    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """A checkpoint is taken, after all records before its barrier: put into the states what must survive."""

    @abstractmethod
    def initialize_state(self, context: FunctionInitializationContext) -> None:
        """Called once in the slot, before `open()`: get the states, and what was in them."""


class CheckpointListener(ABC):
    """For functions that want to know what became of checkpoints. Any function may define one of these methods.

    A subtask hears of it at the beginning of a later epoch, and not at all if the job ends or fails before one: of the
    final checkpoint nobody hears. To make output visible with its checkpoint, derive from `Sink`, whose committer is
    called for every checkpoint.
    """

    @abstractmethod
    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The job would go on from this checkpoint, or from a later one."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027  an optional hook
        """The checkpoint was dropped. What was done since the one before it is part of the next one."""
