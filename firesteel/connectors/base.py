"""What a source and a sink are made of.

A **source** has two halves. Its *enumerator* lives on the driver: it knows the splits and how far each one has been
planned, and says, epoch by epoch, which range of which split every subtask reads. Its *reader* lives in a slot and reads
exactly the range it is given, and the same records again when it is given the same range again. Because the ranges are
planned on the driver, the positions that belong to a checkpoint are known before a single record is read.

A **sink** has two halves too. Its *writer* lives in a slot, takes records and, at a barrier, makes what it wrote durable
but invisible and describes it in *committables*. Its *committer* lives on the driver: it makes committables visible once
the checkpoint that recorded them is complete. A committer sees no slot-local file or connection, so anything it needs must
be in the committable.

Ranges, positions and committables are JSON values: they are stored in checkpoint metadata, which is never unpickled.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.metrics import MetricGroup

Json = Any
"""A value `json.dumps` takes and gives back unchanged: None, bool, int, float, str, lists and dicts with str keys."""

CHUNK = 4096
"""How many records a reader should put into one list: enough to amortise a call, small enough to stay in cache."""


@dataclass(frozen=True)
class EnumeratorContext:
    """What a source's enumerator may know about its job."""

    uid: str
    parallelism: int


@dataclass(frozen=True)
class ReaderContext:
    """What a reader or writer may know about where it runs."""

    job_id: str
    uid: str
    incarnation: int
    subtask: int
    parallelism: int
    directory: str = ""  # the job's own, as the driver knows it
    metrics: MetricGroup | None = field(default=None, compare=False)  # the operator's


WriterContext = ReaderContext


@dataclass(frozen=True)
class CommitterContext:
    """What a sink's committer may know about its job."""

    job_id: str
    uid: str
    incarnation: int
    directory: str = ""  # the job's own, as slots know it


@dataclass(frozen=True)
class PrepareContext:
    """What a source or sink may use on the driver, once, before the job starts."""

    uid: str
    directory: str  # the job's own; what is below it lives as long as the job's checkpoints
    lasting: bool  # whether that directory outlives the job
    spark: Any  # the job's Spark: a `connectors.dataframe.SparkFrames`


@dataclass(frozen=True)
class Assignment:
    """One epoch's reading: for every subtask the ranges it reads, in order; `units` is how much that is in all.

    `caught_up` says whether there is nothing more to read right now, so that event time must not wait for more; None:
    there is not if the units are fewer than asked for.

    `splits` names, for every subtask, the splits that it has after these ranges, those included that have nothing to read
    right now. Event time waits for these and no others, so a split that is named no more is finished, and a subtask that has
    none holds nobody up. One that waits for a split names any. None: every subtask has one split, and has it to the end.
    """

    ranges: Sequence[Sequence[Json]]
    units: int = 0
    caught_up: bool | None = None
    splits: Sequence[Sequence[str]] | None = None


class SplitEnumerator(ABC):
    """The driver's half of a source. Used by one thread."""

    first_units: int = 20_000
    """What a first epoch may read, before anybody knows how long that takes."""

    @abstractmethod
    def plan(self, budget: int) -> Assignment:
        """Take about `budget` units off what is left to read, and move the positions past them.

        A unit is whatever the source counts in cheaply (records, rows, bytes); the caller adapts the budget to how long
        an epoch took. Nothing to read right now: no ranges and no units. A split stays with its subtask until it is
        finished, so that the records of a split keep their order.
        """

    @abstractmethod
    def finished(self) -> bool:
        """Whether everything there ever will be has been planned. False for ever on an unbounded source."""

    @abstractmethod
    def snapshot(self) -> Json:
        """The positions after every range planned so far, finished splits included."""

    @abstractmethod
    def restore(self, state: Json) -> None:
        """Go on from a `snapshot`. Called once, before the first `plan`.

        If the parallelism is the same, a split stays with its subtask: event time goes on there where it was. If it is not,
        event time starts over for all, and splits may go to anyone.
        """

    def completed(self, state: Json) -> None:  # noqa: B027  an optional hook
        """The checkpoint that holds this `snapshot` is complete, and the output of everything before it visible.

        For telling others how far the job is. A failure of that is not the job's: log it.
        """

    def progress(self) -> float | None:
        """How much of all there is has been planned, 0.0 to 1.0, or None where nobody can know."""
        return None

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release connections."""


@dataclass(frozen=True)
class Timestamped:
    """Records with their timestamps: milliseconds since 1970, None for a record that has none.

    `split` is needed where the range is of several.
    """

    values: list[Any]
    times: list[int | None]
    split: str | None = None


@dataclass(frozen=True)
class Aside:
    """Records for the side output of this id (an `OutputTag`'s) of the source's stream, with their timestamps."""

    tag_id: str
    values: list[Any]
    times: list[int | None]


class SourceReader(ABC):
    """A slot's half of a source."""

    side_by_side: bool = True
    """Whether a subtask has its splits at the same time. If not, it is given one when it has finished the one before, and
    event time does not wait for the next one earlier."""

    def splits_of(self, planned: Json) -> Sequence[str]:
        """The splits that a planned range is of, as the `Assignment` names them: watermarks are made for each one apart.

        Most often that is one. Records of several are given as `Timestamped`, which says of which one they are.
        """
        return ("",)

    @abstractmethod
    def read(self, planned: Json) -> Iterator[list[Any] | Timestamped | Aside]:
        """The records of one planned range, in order, as lists of about `CHUNK` records.

        Records that carry a timestamp of their own come as `Timestamped`; a timestamp assigner is given it. What is not
        for the stream itself comes as `Aside`.
        """

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release files and connections."""


class Source(ABC):
    """A description of where records come from; pickled to slots, so it holds no connection."""

    replayable: bool = True
    """Whether a range that was read before can be read again. If not, what a job loses in a failure is lost: the job
    promises at most once, whatever its sinks do."""

    bounded: bool = True
    """Whether the input can come to an end on its own."""

    fresh: bool = False
    """Whether every record is made when it is read and kept by nobody else, down to its parts. Records that stay in the slot
    where they are read then need neither a copy nor a look at what they are made of."""

    def prepare(self, context: PrepareContext) -> Source:
        """Called once on the driver, before anything is sent to slots: the source that is to be read in this one's place.

        It is called again when the job is started again, and must then give a source in which recorded positions mean
        the same.
        """
        return self

    @abstractmethod
    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator: ...

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader: ...

    def get_produced_type(self) -> TypeInformation | None:
        """The type of the records, for a stream that is given none; None: anything."""
        return None


class SinkWriter(ABC):
    """A slot's half of a sink.

    It can have operator state, as a `CheckpointedFunction` has: `initialize_state` is called once, before the first
    `write`, and `snapshot_state` at every barrier of a checkpoint, after `prepare_commit`.
    """

    def initialize_state(self, context: Any) -> None:  # noqa: B027  an optional hook
        """
        :param context: a `FunctionInitializationContext`, which gives out operator state and what was in it.
        """

    def snapshot_state(self, context: Any) -> None:  # noqa: B027  an optional hook
        """Put into the states what must survive.

        :param context: a `FunctionSnapshotContext`, valid during the call only.
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027  an optional hook
        """The checkpoint is complete. Heard of in a later epoch only; committing is the committer's business."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027  an optional hook
        """The checkpoint was dropped; its committables are carried into the next one."""

    @abstractmethod
    def write(self, values: Sequence[Any]) -> None:
        """Take records; they may be buffered until `flush` or `prepare_commit`."""

    def flush(self) -> None:  # noqa: B027  an optional hook
        """The epoch ends: give non-transactional output away now."""

    def prepare_commit(self) -> list[Json]:
        """The barrier: pre-commit all output since the last barrier, and describe it.

        Whatever is not in a committable when this returns must already be visible or never become so. Output that is
        not durable yet is made so by `persist`.
        """
        return []

    def persist(self, committables: Sequence[Json]) -> None:  # noqa: B027  an optional hook
        """Make what `prepare_commit` described durable. The checkpoint is not complete before this returns.

        Called by another thread while the next epoch may be writing, so that nobody waits for the disk. If it raises,
        the job rolls back.
        """

    def close(self) -> None:  # noqa: B027  an optional hook
        """The slot ends. Throw away what no `prepare_commit` has described: nobody else knows of it. What was described
        is the committer's to commit or abort.
        """


class NumberedCommitter(ABC):
    """The driver's half of a transactional sink that has to know which checkpoint it commits; most are a `Committer`.

    Every method may be called again with the same arguments.
    """

    retried: bool = True
    """Whether a commit that failed is tried again at once, and without end. If not, the job fails with its error, and
    restarts as its restart strategy says; recovery then commits again."""

    @abstractmethod
    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        """Make visible what this checkpoint recorded. Already visible counts as success; raise on anything else: it will be
        tried again."""

    def check(self, committables: Sequence[Json]) -> None:  # noqa: B027  an optional hook
        """Raise if these cannot be committed any more. Called just before the checkpoint that holds them is completed: it is
        not then, and the job rolls back. Afterwards it would be too late.
        """

    @abstractmethod
    def abort(self, committables: Sequence[Json]) -> None:
        """Throw these away. Already gone counts as success; must never touch what was committed."""

    @abstractmethod
    def sweep(self, keep: Sequence[Json]) -> None:
        """Abort whatever older incarnations of this job and sink left behind, apart from `keep`."""

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release connections."""


class Committer(NumberedCommitter):
    """The driver's half of a transactional sink. Every method may be called again with the same arguments."""

    def commit_checkpoint(self, checkpoint: int, committables: Sequence[Json]) -> None:
        self.commit(committables)

    @abstractmethod
    def commit(self, committables: Sequence[Json]) -> None:
        """Make these visible. Already visible counts as success; raise on anything else: it will be tried again."""


class Sink(ABC):
    """A description of where records go; pickled to slots, so it holds no connection."""

    def prepare(self, context: PrepareContext) -> Sink:
        """Called once on the driver, before anything is sent to slots: the sink that is to be written in this one's place."""
        return self

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter: ...

    def create_committer(self, context: CommitterContext) -> NumberedCommitter | None:
        """None: the sink is not transactional, its output leaves with each epoch."""
        return None

    @property
    def guarantee(self) -> DeliveryGuarantee:
        """What the sink promises when the job recovers. Exactly once needs a committer; without one, what was written
        since the last checkpoint is written again. A sink that depends on its settings says so here.
        """
        if type(self).create_committer is Sink.create_committer:
            return DeliveryGuarantee.AT_LEAST_ONCE
        return DeliveryGuarantee.EXACTLY_ONCE
