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
from dataclasses import dataclass
from typing import Any

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


WriterContext = ReaderContext


@dataclass(frozen=True)
class CommitterContext:
    """What a sink's committer may know about its job."""

    job_id: str
    uid: str
    incarnation: int


@dataclass(frozen=True)
class Assignment:
    """One epoch's reading: for every subtask the ranges it reads, in order; `units` is how much that is in all."""

    ranges: Sequence[Sequence[Json]]
    units: int = 0


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
        """Go on from a `snapshot`. Called once, before the first `plan`."""

    def progress(self) -> float | None:
        """How much of all there is has been planned, 0.0 to 1.0, or None where nobody can know."""
        return None

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release connections."""


class SourceReader(ABC):
    """A slot's half of a source."""

    @abstractmethod
    def read(self, planned: Json) -> Iterator[list[Any]]:
        """The records of one planned range, in order, as lists of about `CHUNK` records."""

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release files and connections."""


class Source(ABC):
    """A description of where records come from; pickled to slots, so it holds no connection."""

    @abstractmethod
    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator: ...

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader: ...


class SinkWriter(ABC):
    """A slot's half of a sink."""

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


class Committer(ABC):
    """The driver's half of a transactional sink. Every method may be called again with the same arguments."""

    @abstractmethod
    def commit(self, committables: Sequence[Json]) -> None:
        """Make these visible. Already visible counts as success; raise on anything else: it will be tried again."""

    @abstractmethod
    def abort(self, committables: Sequence[Json]) -> None:
        """Throw these away. Already gone counts as success; must never touch what was committed."""

    @abstractmethod
    def sweep(self, keep: Sequence[Json]) -> None:
        """Abort whatever older incarnations of this job and sink left behind, apart from `keep`."""

    def close(self) -> None:  # noqa: B027  an optional hook
        """Release connections."""


class Sink(ABC):
    """A description of where records go; pickled to slots, so it holds no connection."""

    @abstractmethod
    def create_writer(self, context: WriterContext) -> SinkWriter: ...

    def create_committer(self, context: CommitterContext) -> Committer | None:
        """None: the sink is not transactional, its output leaves with each epoch."""
        return None
