"""A whole program in one process, without Spark."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.rescaling import with_key_groups_of
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.environment import StreamExecutionEnvironment
from firesteel.errors import FiresteelError, GraphError, StateError
from firesteel.graph.nodes import Collect, Graph, Input, Map, Partitioning
from firesteel.metrics import merge
from firesteel.runtime.assembly import Assembly
from firesteel.runtime.keyed_state import KeyedState
from firesteel.testing.engine import InjectedFailure, LocalEngine
from firesteel.testing.inspection import ANY, Timer, empty_state_of, state_of, timers_of
from firesteel.testing.local_job import LocalJob, Sizes
from firesteel.testing.recording import WatchedAssembly
from firesteel.testing.snapshots import temporary_directory, users_own_errors

Collectable = DataStream | str
"""A stream, or the name or uid of the operator whose output is meant."""

_EPOCHS = 100_000


class GraphHarness:
    """Runs the program that an environment describes, at its parallelism, with the very code that runs in Spark's slots.

    :param environment: the program. It may have sinks of its own, or none.
    :param collect: streams whose records are wanted, as streams or by the name or uid of an operator; see `results`.
    :param epoch_records: where epochs are cut: after so many records of each source, after these numbers of them in turn,
        or at random (a `random.Random`, or a seed with `seed=`). A right program gives the same results for all of them.
    :param fail_at: epochs, counted from 1, that fail when they are through: the program goes on from the last checkpoint
        with state restored from its files, and has to give the same results.
    :param checkpoint_every: take a checkpoint at the end of every so many epochs. By default at the end of each one if
        there are failures or the environment enables checkpointing, and else none.
    :param clock: the processing time to start at, in milliseconds; it stands still unless told otherwise.
    :param check_mutation: look for state that is changed in place, and for records that are changed after they were emitted.
    :param directory: where checkpoints go. A second harness with the same directory goes on from where the first one got to,
        with another parallelism too.
    """

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        *,
        collect: Collectable | Iterable[Collectable] = (),
        epoch_records: Sizes = None,
        seed: int | None = None,
        fail_at: Iterable[int] = (),
        checkpoint_every: int | None = None,
        clock: int = 0,
        check_mutation: bool = True,
        directory: str | None = None,
        name: str = "harness",
    ) -> None:
        self._clock = clock
        self._fail_at = set(fail_at)
        wanted = [collect] if isinstance(collect, (DataStream, str)) else list(collect)
        with _collecting(environment.graph, wanted) as self._labels:
            plan = environment.plan()
        settings = environment.settings(name)
        existing = JobDirectory.find(directory, name) if directory is not None else None
        if existing is not None and (newest := existing.latest()) is not None:
            plan = with_key_groups_of(newest.metadata, plan)
        if checkpoint_every is None:
            checkpoint_every = 1 if self._fail_at or settings.checkpoints.enabled or directory is not None else 0
        self._checkpoint_every = checkpoint_every
        self._collected: dict[int, list[Any]] = {label: [] for label in self._labels.values()}
        self._printed = io.StringIO()
        self._temporary = temporary_directory()
        self._assemble: type[Assembly] = WatchedAssembly if check_mutation else Assembly
        self._engine = LocalEngine(plan, now=lambda: self._clock, assemble=self._assemble)
        self._plan = plan
        sizes = random.Random(seed) if seed is not None else epoch_records
        where = directory if directory is not None else self._temporary.name
        self._job = LocalJob(plan, settings, where, self._engine, sizes, checkpoint_every > 0)
        self.epochs = 0
        """How many epochs were run, those that failed included."""

    # ---- running

    def run(self) -> GraphHarness:
        """Run until the input ends.

        :raises FiresteelError: it does not seem to end.
        """
        for _ in range(_EPOCHS):
            if not self.step():
                self._engine.check_state(everything=True)
                return self
        raise FiresteelError(f"the input has not ended after {_EPOCHS} epochs: for an unbounded source call step()")

    def step(self, epochs: int = 1) -> bool:
        """Run one epoch, or several. Says whether the input goes on."""
        for _ in range(epochs):
            if self._job.finished:
                return False
            self._step()
        return not self._job.finished

    def _step(self) -> None:
        with contextlib.redirect_stdout(self._printed), contextlib.redirect_stderr(self._printed), users_own_errors():
            if self._job.restarts < 0:
                self._job.start()
            self.epochs += 1
            self._engine.fail_next = self.epochs in self._fail_at
            try:
                self._job.epoch(self._checkpoint_every > 0 and self.epochs % self._checkpoint_every == 0)
            except InjectedFailure:
                self._job.stop()
                self._job.start()
        self._sort_collected()

    def fail(self) -> GraphHarness:
        """Lose all slots now, and start again from the last checkpoint."""
        if not self._checkpoint_every:
            raise ValueError("without checkpoints a job does not survive a failure: give checkpoint_every=1")
        with contextlib.redirect_stdout(self._printed), users_own_errors():
            if self._job.restarts >= 0:
                self._job.stop()
            self._job.start()
        return self

    @property
    def finished(self) -> bool:
        """Whether the input has ended."""
        return self._job.finished

    @property
    def restarts(self) -> int:
        """How often the program was started again."""
        return max(0, self._job.restarts)

    # ---- time

    @property
    def clock(self) -> int:
        """The processing time, in milliseconds."""
        return self._clock

    def set_clock(self, milliseconds: int) -> GraphHarness:
        """It is that late by now. Processing time timers fire in the next epoch."""
        if milliseconds < self._clock:
            raise ValueError(f"the clock is at {self._clock} and cannot be set back to {milliseconds}")
        self._clock = milliseconds
        return self

    def advance_clock(self, milliseconds: int) -> GraphHarness:
        """Time goes by. Processing time timers fire in the next epoch."""
        return self.set_clock(self._clock + milliseconds)

    # ---- what came out

    def results(self, stream: Collectable | None = None) -> list[Any]:
        """The records of a collected stream that no failure can take back: without checkpoints all of them, else those that
        a completed checkpoint covers. The stream may be left out if there is only one."""
        if stream is None:
            if len(self._collected) != 1:
                raise GraphError(f"{len(self._collected)} streams are collected: say which one")
            return list(next(iter(self._collected.values())))
        key = stream if isinstance(stream, str) else _identity(stream)
        if key not in self._labels:
            raise GraphError("that stream is not collected: name it in collect=[...] when making the harness")
        return list(self._collected[self._labels[key]])

    def printed(self) -> list[str]:
        """The lines that the program printed, its print() sinks included."""
        return self._printed.getvalue().splitlines()

    def metrics(self) -> dict[str, dict[str, Any]]:
        """Operator uid -> the values of its metrics by name, all subtasks together, as of the last epoch's end."""
        return merge(self._job.metrics)

    def _sort_collected(self) -> None:
        queue = self._job.results.queue
        while not queue.empty():
            for label, value in queue.get():
                self._collected[label].append(value)

    # ---- state

    def state(self, operator: str, name: str, key: Any = ANY) -> Any:
        """A copy of what a state of an operator, given by name or uid, holds for a key, or for all keys as a dict."""
        found: dict[Any, Any] = {}
        parts = self._keyed(operator)
        for keyed in parts:
            found.update(state_of(keyed, name, self._clock))
        if key is ANY:
            return found
        return found[key] if key in found else empty_state_of(parts[0], name)

    def keys(self, operator: str, name: str) -> list[Any]:
        """The keys for which a state of an operator holds something."""
        return list(self.state(operator, name))

    def timers(self, operator: str, key: Any = ANY) -> list[Timer]:
        """The timers of an operator, earliest first."""
        found = [timer for keyed in self._keyed(operator) for timer in timers_of(keyed, key)]
        return sorted(found, key=lambda timer: timer.time)

    def _keyed(self, operator: str) -> list[KeyedState]:
        uids = [each.uid for each in self._plan.operators if operator in (each.name, each.uid)]
        if len(uids) != 1:
            names = ", ".join(repr(each.name) for each in self._plan.operators)
            raise GraphError(f"{len(uids)} operators have the name or uid {operator!r}; there are: {names}")
        if not self._engine.tasks:
            raise StateError("the program has not started: call step() or run() first")
        stores = {id(e.store) for task in self._engine.tasks for e in task.assembly.stores if e.uid == uids[0]}
        found = [keyed for task in self._engine.tasks for keyed in task.assembly.keyed if id(keyed.store) in stores]
        if not found:
            raise StateError(f"operator {operator!r} has no keyed state: its stream is not keyed")
        return found

    # ---- the end

    def close(self) -> None:
        """End the program where it is."""
        try:
            with contextlib.redirect_stdout(self._printed), users_own_errors():
                self._job.stop()
        finally:
            self._temporary.cleanup()

    def __enter__(self) -> GraphHarness:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def run_locally(environment: StreamExecutionEnvironment, stream: Collectable, **options: Any) -> list[Any]:
    """Run a program to the end of its input and give the records of one of its streams; options are GraphHarness's."""
    with GraphHarness(environment, collect=stream, **options) as harness:
        return harness.run().results()


class _Label:
    """Tells the records of several collected streams apart."""

    def __init__(self, label: int) -> None:
        self.label = label

    def __call__(self, value: Any) -> tuple[int, Any]:
        return self.label, value


@contextlib.contextmanager
def _collecting(graph: Graph, wanted: Sequence[Collectable]) -> Iterator[dict[Any, int]]:
    """Give these streams a collecting end, for as long as it takes to make a plan."""
    labels: dict[Any, int] = {}
    added: list[int] = []
    try:
        for label, stream in enumerate(wanted):
            inputs = _node_inputs(graph, stream) if isinstance(stream, str) else stream._unkeyed()
            parallelism = _parallelism(graph, inputs)
            node = graph.add(Map(_Label(label)), f"collected {label}", inputs, parallelism=parallelism)
            end = graph.add(Collect(), "Collect", (Input(node.id),), parallelism=parallelism)
            added += [node.id, end.id]
            labels[stream if isinstance(stream, str) else _identity(stream)] = label
        yield labels
    finally:
        for node_id in reversed(added):
            graph.remove(node_id)


def _node_inputs(graph: Graph, name: str) -> tuple[Input, ...]:
    found = [node for node in graph.nodes() if name in (node.name, node.uid)]
    if len(found) != 1:
        names = ", ".join(repr(node.name) for node in graph.nodes())
        raise GraphError(f"{len(found)} operators have the name or uid {name!r}; there are: {names}")
    return (Input(found[0].id),)


def _parallelism(graph: Graph, inputs: Sequence[Input]) -> int | None:
    """That of the stream itself, so that collecting it changes nothing about the order of its records."""
    plain = all(each.partitioning is Partitioning.FORWARD for each in inputs)
    return graph[inputs[0].node].parallelism if plain and len(inputs) == 1 else None


def _identity(stream: DataStream) -> Any:
    return tuple((each.node, each.partitioning, each.port, each.side) for each in stream._unkeyed())
