"""Savepoints made of DataFrames: `firesteel.state.SavepointWriter`.

Rows are turned into entries where they are, shuffled to the slot that will own them, and sorted there by key group; one
task for each slot writes its file. So no process has more than a key group of state in memory.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from firesteel.common.execution_config import MAX_KEY_GROUPS
from firesteel.common.storage import Storage, open_storage, reason
from firesteel.coordinator.importing import check_importable
from firesteel.coordinator.inspecting import CheckpointStates, open_states
from firesteel.coordinator.metadata import METADATA, CheckpointMetadata, OperatorInfo
from firesteel.coordinator.savepoint import publish
from firesteel.engine.spark_private import map_in_arrow
from firesteel.engine.state_encoding import ENCODED, FAILED, NO_STATE, Encoding, StateRows
from firesteel.engine.state_frames import first_entry
from firesteel.engine.state_workers import Batches, Shipped, answers, check_session, collect_answers, rebuilt
from firesteel.errors import ConfigurationError, StateError
from firesteel.graph.plan import default_max_parallelism
from firesteel.state.reading import Slice, StateId
from firesteel.state.rewriting import NewEntry, NewState, SlotOrder, write_slot


@dataclass(frozen=True)
class _Change:
    """What is to become of one state."""

    rows: StateRows
    over: bool  # the rows are laid over what there is


class SavepointWriter:
    """Makes a savepoint: a new one, or one that is another one with some states replaced, added or removed.

    Nothing is written before `write`, and the existing savepoint or checkpoint is never touched.
    """

    def __init__(
        self,
        spark: SparkSession,
        metadata: CheckpointMetadata,
        existing: CheckpointStates | None,
        parallelism: int,
        max_parallelism: int,
    ) -> None:
        """Use `new_savepoint` or `from_existing_savepoint`."""
        self._spark, self._metadata, self._existing = spark, metadata, existing
        self._operators = dict(metadata.operators)
        self._new_operator = OperatorInfo("", "State", parallelism, max_parallelism, keyed=False)
        self._removed: set[tuple[str, str]] = set()
        self._changes: dict[tuple[str, str], _Change] = {}

    @staticmethod
    def new_savepoint(
        spark: SparkSession, max_parallelism: int | None = None, parallelism: int | None = None
    ) -> SavepointWriter:
        """A savepoint of nothing but what is given. A job that starts from it reads its sources from their beginning.

        :param max_parallelism: the number of key groups, for as long as the state lives; what a job would have unless given.
        :param parallelism: of the operators, and so the number of files; Spark's default parallelism unless given.
        """
        check_session(spark)
        if parallelism is None:
            parallelism = min(spark.sparkContext.defaultParallelism, max_parallelism or MAX_KEY_GROUPS)
        if max_parallelism is None:
            max_parallelism = default_max_parallelism(parallelism)
        if not 0 < parallelism <= max_parallelism <= MAX_KEY_GROUPS:
            raise ConfigurationError(
                f"a savepoint cannot have parallelism {parallelism} and maximum parallelism {max_parallelism}: from 1 to the "
                f"maximum, and that at most {MAX_KEY_GROUPS}"
            )
        metadata = CheckpointMetadata(
            job_id=uuid.uuid4().hex,
            job_name="made of DataFrames",
            checkpoint=1,
            incarnation=0,
            created_ms=0,
            final=False,
            operators={},
            positions={},
            state=[[] for _ in range(parallelism)],
            committables={},
        )
        return SavepointWriter(spark, metadata, None, parallelism, max_parallelism)

    @staticmethod
    def from_existing_savepoint(spark: SparkSession, path: str) -> SavepointWriter:
        """A savepoint that has everything of an existing savepoint or checkpoint, positions of sources too, but for what is
        changed here.

        :param path: its directory or its `_metadata` file.
        :raises RestoreError: it is none, it cannot be read, or it holds output that is not committed yet.
        """
        check_session(spark)
        states = open_states(path)
        check_importable(states.checkpoint, leave_output=False)
        slots = len(states.metadata.state)
        keyed = [info.max_parallelism for info in states.metadata.operators.values() if info.keyed]
        groups = keyed[0] if keyed else default_max_parallelism(slots)
        return SavepointWriter(spark, states.metadata, states, min(slots, groups), groups)

    def with_operator(self, uid: str, states: Mapping[str, DataFrame]) -> SavepointWriter:
        """Give an operator these states and no others: name -> rows, each as for `with_state`. Where it is a source, it goes
        on from where it was."""
        self._remove_states(uid)
        for name, frame in states.items():
            self._removed.discard((uid, name))
            self.with_state(uid, name, frame)
        return self

    def with_state(
        self,
        uid: str,
        name: str,
        frame: DataFrame,
        kind: str | None = None,
        *,
        key: Callable[[Any], Any] | None = None,
        map_key: Callable[[Any], Any] | None = None,
        value: Callable[[Any], Any] | None = None,
    ) -> SavepointWriter:
        """Give an operator a state, in the place of the one of that name if it has one.

        The columns are those that `firesteel.state.read` gives: `key` and `value`; `position` for a list, `map_key` for a map,
        `timestamp` and no value for timers; `window` for state of windows; `last_access` for time-to-live. Without `key` it is
        operator state: `value` and maybe `position` and `subtask` for a list, `map_key` and `value` for broadcast state.
        A column `value_pickle` may be in the place of `value`, and so on. `key_group` is not looked at. Keys and values become
        objects like those that they replace; after `remove_state` there are none.

        :param kind: as in `firesteel.state.list_states`; that of the state in its place, or else what the columns say.
        :param key: makes the key of the column's value; `map_key` and `value` likewise. Structs come as tuples or Rows.
        :raises StateError: the columns cannot become such a state.
        """
        return self._give(uid, name, frame, kind, {"key": key, "map_key": map_key, "value": value}, over=False)

    def update_state(
        self,
        uid: str,
        name: str,
        frame: DataFrame,
        *,
        key: Callable[[Any], Any] | None = None,
        map_key: Callable[[Any], Any] | None = None,
        value: Callable[[Any], Any] | None = None,
    ) -> SavepointWriter:
        """Put rows into a keyed state that there is: they replace or add values, lists, entries of maps and timers, and
        everything else in it stays as it is. The parameters are those of `with_state`.

        :raises StateError: there is no such state.
        """
        if self._existing is None:
            raise StateError(f"there is no state {name!r} to update in a new savepoint. Use with_state()")
        state = self._existing.find(uid, name)
        if not state.keyed:
            raise StateError(f"{state} is {state.kind} state, of which only the whole can be given: use with_state()")
        return self._give(uid, name, frame, state.kind, {"key": key, "map_key": map_key, "value": value}, over=True)

    def remove_state(self, uid: str, name: str) -> SavepointWriter:
        """Leave a state out.

        :raises StateError: there is no such state.
        """
        if (uid, name) not in self._changes:
            if self._existing is None:
                raise StateError(f"there is no state {name!r} of operator {uid} to remove")
            self._existing.find(uid, name)
        self._changes.pop((uid, name), None)
        self._removed.add((uid, name))
        return self

    def remove_operator(self, uid: str) -> SavepointWriter:
        """Leave an operator out, with its states and positions: it starts anew.

        :raises StateError: there is no such operator.
        """
        if uid not in self._operators:
            raise StateError(
                f"there is no operator with uid {uid!r} to remove. There are: {', '.join(sorted(self._operators)) or 'none'}"
            )
        del self._operators[uid]
        self._remove_states(uid)
        return self

    def _remove_states(self, uid: str) -> None:
        self._changes = {place: change for place, change in self._changes.items() if place[0] != uid}
        self._removed |= {(state.uid, state.name) for state in self._states() if state.uid == uid}

    def _give(
        self, uid: str, name: str, frame: DataFrame, kind: str | None, functions: dict[str, Any], over: bool
    ) -> SavepointWriter:
        known, pattern = None, None
        if self._existing is not None and (uid, name) not in self._removed:
            known = next((state for state in self._states() if (state.uid, state.name) == (uid, name)), None)
            pattern = first_entry(self._existing, known) if known is not None else None
        info = self._operators.get(uid) or replace(self._new_operator, name=uid)
        rows = StateRows.of(uid, name, frame, kind, known, pattern, functions, info.parallelism, info.max_parallelism)
        self._operators[uid] = replace(info, keyed=info.keyed or rows.state.keyed)
        self._changes[uid, name] = _Change(rows, over)
        self._removed.discard((uid, name))
        return self

    def _states(self) -> list[StateId]:
        return self._existing.states if self._existing is not None else []

    # ---- writing

    def write(self, path: str) -> str:
        """Write the savepoint, and give its path: what `firesteel run -s` takes.

        :param path: a directory that is not there yet or is empty, as a path or URI.
        :raises ConfigurationError: there is something already, or it cannot be written.
        :raises StateError: a row cannot be stored; nothing is left of the savepoint then.
        """
        started = time.monotonic()
        storage = _new_target(path)
        try:
            chains = self._write_slots(storage)
            positions = {uid: where for uid, where in self._metadata.positions.items() if uid in self._operators}
            final = self._metadata.final and positions == self._metadata.positions  # else there is input again
            metadata = replace(self._metadata, operators=self._operators, positions=positions, final=final)
            publish(storage, metadata, chains, "", time.monotonic() - started)
        except BaseException as error:
            storage.delete_folder()
            if isinstance(error, OSError):
                raise ConfigurationError(f"savepoint {storage} cannot be written: {reason(error)}") from error
            raise
        _sweep(storage, {handle["file"] for chain in chains for handle in chain})
        return str(storage)

    def _write_slots(self, storage: Storage) -> list[list[dict[str, Any]]]:
        slots = len(self._metadata.state)
        changes = list(self._changes.values())
        orders = [self._order(storage, slot, changes) for slot in range(slots)]
        encoded = [_encode(change.rows, index) for index, change in enumerate(changes)]
        # a row for each slot, so that each is written, and by a task that knows which it is
        encoded.append(self._spark.range(slots).selectExpr(*_NO_ENTRY))
        rows = reduce(DataFrame.unionAll, encoded)
        rows = rows.repartitionById(slots, "slot").sortWithinPartitions(*ENCODED.names[:-1])
        handles = dict(collect_answers(rows, _Writing(orders), f"savepoint {storage}"))
        return [[handles[slot]] if handles[slot] is not None else [] for slot in range(slots)]

    def _order(self, storage: Storage, slot: int, changes: list[_Change]) -> SlotOrder:
        replaced = {(change.rows.state.uid, change.rows.state.name) for change in changes} | self._removed
        kept = [
            (state, piece)
            for state in self._states()
            if (state.uid, state.name) not in replaced and (piece := self._slice(state, slot)) is not None
        ]
        new = [
            NewState(change.rows.state, self._slice(change.rows.state, slot) if change.over else None)
            for change in changes
        ]
        return SlotOrder(storage.uri, slot, self._metadata.checkpoint, kept, new)

    def _slice(self, state: StateId, slot: int) -> Slice | None:
        assert self._existing is not None
        return next((piece for piece in self._existing.slices(state, copies=True) if piece.subtask == slot), None)


_NO_ENTRY = (
    "cast(id as int) slot", f"{NO_STATE} state", "0 group", "X'' identity", "0L position", "X'' part", "X'' entry"
)  # fmt: skip


def _encode(rows: StateRows, index: int) -> DataFrame:
    encoding = Encoding(rows.without_frame(), index)
    return map_in_arrow(rows.selected(), Shipped.of(encoding), ENCODED)


@dataclass(frozen=True)
class _Writing:
    """Writes the files of the slots whose entries it is given, sorted."""

    orders: list[SlotOrder]

    def __call__(self, batches: Batches) -> Batches:
        return answers(self._written(batches))

    def _written(self, batches: Batches) -> Iterator[tuple[int, Any]]:
        for slot, rows in groupby(_rows(batches), itemgetter(0)):
            yield slot, write_slot(self.orders[slot], (NewEntry(*row[1:]) for row in rows if row[1] != NO_STATE))


def _rows(batches: Batches) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if row[1] == FAILED:
                raise rebuilt(row[-1])
            yield row


def _new_target(path: str) -> Storage:
    storage = open_storage(path)
    if storage.name == METADATA:
        storage = storage.above()
    try:
        if storage.names():
            raise ConfigurationError(
                f"{storage} is there already, and nothing of it is replaced. Give a directory that is new or empty"
            )
        storage.check_writable()
    except OSError as error:
        raise ConfigurationError(f"savepoint {storage} cannot be written: {reason(error)}") from error
    return storage


def _sweep(storage: Storage, used: set[str]) -> None:
    """Files of tasks that Spark ran again."""
    for name in storage.names():
        if name.endswith(".state") and name not in used:
            storage.delete(name)
