"""What the coordinator needs of whatever runs the slots. Spark is one such engine; tests have another, in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from firesteel.connectors.base import Json
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.origin import Origin

SlotMessage = dict[str, Any]
FileHandle = dict[str, Any]


@dataclass(frozen=True)
class Deployment:
    """Everything slots need to start: the program, who they are, and the state they start with."""

    job_id: str
    job_name: str
    plan: JobPlan
    incarnation: int
    attempt: int
    directory: str  # the job's own, a path or URI: state files go there, and what sinks keep for themselves
    restore: Mapping[int, Sequence[FileHandle]]  # slot -> its state files, oldest first
    parameters: Mapping[str, str] = field(default_factory=dict)  # the job's, for functions
    checkpointing: bool = True
    origin: Origin | None = None  # the checkpoint that state is of
    max_state_size: int | None = None  # state goes to the driver's memory instead, up to so many bytes of each slot
    rocksdb: RocksDBSettings | None = None  # None: slots have their state in memory


@dataclass(frozen=True)
class EpochOrder:
    """One epoch: what every subtask of every source reads, and the barrier at its end if there is one."""

    epoch: int
    ranges: Mapping[str, Sequence[Sequence[Json]]]  # source uid -> subtask -> ranges
    checkpoint: int | None = None
    snapshot: bool = True
    whole: bool = False  # the snapshot is of everything, and not of what changed
    completed: int | None = None
    caught_up: Sequence[str] = ()  # uids of sources that have nothing more to give for now
    ended: Sequence[str] = ()  # uids of sources that never will have
    splits: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)  # source uid -> subtask -> its splits
    held_back: Sequence[str] = ()  # uids of sources that are not read because they are ahead of others
    last: bool = False  # no other one is expected to follow
    over: bool = False  # the input had ended before this start, and nothing is new: the clock fires no timers

    def reading_of(self, slot: int) -> dict[str, Any]:
        """What the subtasks of one slot read, and from which splits."""
        return {
            "ranges": {uid: list(by[slot]) for uid, by in self.ranges.items() if slot < len(by)},
            "splits": {uid: list(by[slot]) for uid, by in self.splits.items() if slot < len(by)},
        }


@dataclass(frozen=True)
class EpochResult:
    """What came back in band: a report of every slot whose output was used, and records for the driver."""

    reports: Sequence[dict[str, Any]]
    collected: Sequence[list[Any]] = field(default_factory=list)


class Engine(Protocol):
    """Runs slots. Used by the coordinator's thread, apart from `cancel`."""

    def deploy(self, deployment: Deployment, listener: Callable[[SlotMessage], None]) -> None:
        """Start the slots and restore their state. The listener gets their messages, from other threads."""

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Run one epoch to its end, or raise; after that only a new deployment helps."""

    def tell(self, slot: int, message: SlotMessage) -> None:
        """Send a slot something to do that is no part of an epoch; one that is gone does not get it. Any thread may call
        this."""

    def undeploy(self) -> None:
        """End the slots, whatever state they are in."""

    def cancel(self) -> None:
        """Make a running `run_epoch` or `deploy` raise soon. Any thread may call it."""

    def close(self) -> None:
        """Release everything."""
