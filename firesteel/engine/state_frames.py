"""States of checkpoints and savepoints as DataFrames: `firesteel.state.read` and `firesteel.state.diff`.

A partition reads some key groups of one slot's chain of files; nothing but a sample and types comes to the driver. Types
that are not declared are found by a pass over the whole state, as `spark.read.json` does, so that no query fails halfway
because of a value that does not fit.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, NamedTuple

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from firesteel.connectors.dataframe_columns import RecordColumns
from firesteel.coordinator.inspecting import CheckpointStates, open_states, split
from firesteel.datastream.window import CountWindow, TimeWindow
from firesteel.engine.dataframes import arrow_schema
from firesteel.engine.spark_private import map_in_arrow
from firesteel.engine.state_types import REPR, VOID, Declared, Shape, check_fits, declared_type, shape_of, unite
from firesteel.engine.state_workers import Batches, Shipped, run_parts
from firesteel.errors import StateError, TypeMismatchError
from firesteel.state.reading import Entry, Slice, StateId, block_checksums, contents, entries, entries_of

_BATCH = 8192

_LONG, _INT, _STRING, _BINARY = spark.LongType(), spark.IntegerType(), spark.StringType(), spark.BinaryType()
_PARTS: dict[str, tuple[str, spark.DataType | str]] = {
    "list": ("position", _LONG),
    "map": ("map_key", "map_key"),
    "timers": ("timestamp", _LONG),
    "operator-list": ("position", _LONG),
    "operator-union": ("position", _LONG),
    "raw": ("position", _LONG),
    "broadcast": ("map_key", "map_key"),
    "subtask": ("name", _STRING),
}
"""Kind of state -> the column for what tells the entries of one key apart, and its type, which may be one to be found."""


class Change(NamedTuple):
    """A difference between two states."""

    key: Any
    window: Any
    part: Any
    change: str
    old: Any
    new: Any
    old_time: int | None
    new_time: int | None
    group: int


@dataclass(frozen=True)
class Column:
    """Where a column comes from and what it shows."""

    name: str
    at: int  # in an Entry or Change
    type: spark.DataType | str  # or what has to be declared or found: key, map_key or value
    show: Callable[[Any], Any] | None = None

    @property
    def parameter(self) -> str:
        return f"{self.type}_type"


# -- reading -------------------------------------------------------------------------------------------------


def read(
    session: SparkSession,
    path: str,
    uid: str,
    name: str,
    key_type: Any = None,
    map_key_type: Any = None,
    value_type: Any = None,
    pickled: bool = False,
) -> DataFrame:
    """See `firesteel.state.read`."""
    states = open_states(path)
    state = states.find(uid, name)
    columns = _columns(state, first_entry(states, state))
    if pickled:
        columns += [Column(f"{c.name}_pickle", c.at, _BINARY, _pickle) for c in columns if isinstance(c.type, str)]
    given = {"key": key_type, "map_key": map_key_type, "value": value_type}
    parts = states.parts(state, session.sparkContext.defaultParallelism)
    rows = _Reading(state)
    return _frame(session, rows, parts, _resolve(session, state, rows, parts, columns, given))


def first_entry(states: CheckpointStates, state: StateId) -> Entry | None:
    """One entry of a state, for what it looks like; None if there are none."""
    return next((entry for piece in states.slices(state) for entry in entries(state, piece)), None)


def _columns(state: StateId, sample: Entry | None) -> list[Column]:
    columns = _place(state, sample)
    if state.layout != "timers":
        columns.append(Column("value", Entry._fields.index("value"), "value"))
    if state.ttl:
        columns.append(Column("last_access", Entry._fields.index("time"), _LONG))
    if state.keyed:
        columns.append(Column("key_group", Entry._fields.index("group"), _INT))
    return columns


def _place(state: StateId, sample: Entry | Change | None) -> list[Column]:
    """The columns that say where an entry is. They are at the same places in entries and changes."""
    columns = []
    if state.keyed:
        columns.append(Column("key", 0, "key"))
        if sample is not None and sample.window is not None:
            columns.append(_window(sample.window))
    elif state.layout != "broadcast":
        columns.append(Column("subtask", 0, _INT))
    if state.layout in _PARTS:
        name, kind = _PARTS[state.layout]
        columns.append(Column(name, 2, kind))
    return columns


def _window(sample: Any) -> Column:
    if isinstance(sample, TimeWindow):
        return Column("window", 1, spark.StructType().add("start", _LONG).add("end", _LONG))
    if isinstance(sample, CountWindow):
        return Column("window", 1, spark.StructType().add("id", _LONG))
    return Column("window", 1, _STRING, repr)


@dataclass(frozen=True)
class _Reading:
    """Gives the entries of a part."""

    state: StateId

    def __call__(self, part: Sequence[Slice]) -> Iterator[Entry]:
        return chain.from_iterable(entries(self.state, piece) for piece in part)


# -- comparing -----------------------------------------------------------------------------------------------


def diff(
    session: SparkSession,
    old: str,
    new: str,
    uid: str,
    name: str,
    key_type: Any = None,
    map_key_type: Any = None,
    value_type: Any = None,
) -> DataFrame:
    """See `firesteel.state.diff`."""
    before, after = open_states(old), open_states(new)
    state = _same_state(before, after, uid, name)
    sides = [states for states in (before, after) if state in states.states]
    samples = (first_entry(states, state) for states in sides)
    columns = _place(state, next((sample for sample in samples if sample is not None), None))
    columns.append(Column("change", 3, _STRING))
    if state.layout != "timers":
        columns += [Column("old_value", 4, "value"), Column("new_value", 5, "value")]
    if state.ttl:
        columns += [Column("old_last_access", 6, _LONG), Column("new_last_access", 7, _LONG)]
    if state.keyed:
        columns.append(Column("key_group", 8, _INT))
    given = {"key": key_type, "map_key": map_key_type, "value": value_type}
    parts = _pairs(before, after, state, session.sparkContext.defaultParallelism)
    rows = _Comparing(state)
    return _frame(session, rows, parts, _resolve(session, state, rows, parts, columns, given))


def _same_state(before: CheckpointStates, after: CheckpointStates, uid: str, name: str) -> StateId:
    """
    :raises StateError: neither has the state, or they cannot be compared.
    """
    found = [
        next((state for state in states.states if (state.uid, state.name) == (uid, name)), None)
        for states in (before, after)
    ]
    if found[0] is None and found[1] is None:
        return after.find(uid, name)
    if found[0] is None or found[1] is None:
        return found[0] or found[1]  # type: ignore[return-value]
    if found[0].kind != found[1].kind:
        raise StateError(
            f"{found[0]} is of kind {found[0].kind} in {before.checkpoint.path} and of kind {found[1].kind} in "
            f"{after.checkpoint.path}: they hold different things and cannot be compared"
        )
    groups = [states.metadata.operators[uid].max_parallelism for states in (before, after)]
    if found[0].keyed and groups[0] != groups[1]:
        raise StateError(
            f"operator {uid} has maximum parallelism {groups[0]} in {before.checkpoint.path} and {groups[1]} in "
            f"{after.checkpoint.path}, so keys are in other key groups. Read both and join them by key instead"
        )
    return found[0]


_Pair = tuple[list[Slice], list[Slice]]


def _pairs(before: CheckpointStates, after: CheckpointStates, state: StateId, at_least: int) -> list[_Pair]:
    """The same key groups of both, whichever subtasks had them."""
    sides = [states if state in states.states else None for states in (before, after)]
    sizes: Counter[int] = Counter()
    for states in sides:
        sizes.update(states.group_sizes(state) if states is not None else {})
    pairs = []
    for groups in split(sorted(sizes), sizes, at_least):
        old, new = (
            [
                cut
                for piece in (states.slices(state) if states is not None else [])
                if (cut := _only(piece, groups)).groups
            ]
            for states in sides
        )
        pairs.append((old, new))
    return pairs


def _only(piece: Slice, groups: Container[int]) -> Slice:
    return replace(piece, groups=[group for group in piece.groups if group in groups])


@dataclass(frozen=True)
class _Comparing:
    """Gives what differs in a pair of parts, a key group at a time."""

    state: StateId

    def __call__(self, pair: _Pair) -> Iterator[Change]:
        if not self.state.keyed:
            yield from self._changes(*(self._entries(side) for side in pair))
            return
        old, new = ({group: piece for piece in side for group in piece.groups} for side in pair)
        sums = [
            {
                group: found
                for piece in side
                for group, found in block_checksums(self.state, piece).items()
                if group in by
            }
            for side, by in zip(pair, (old, new), strict=True)
        ]
        for group in sorted({*old, *new}):
            if group in old and group in new and sums[0][group] == sums[1][group]:
                continue  # the same blocks
            yield from self._changes(
                *(self._entries([replace(by[group], groups=[group])] if group in by else []) for by in (old, new))
            )

    def _entries(self, side: Sequence[Slice]) -> dict[Any, Entry]:
        return {
            entry[:3]: entry
            for piece in side
            for group, content in contents(self.state, piece)
            for entry in entries_of(self.state, piece.subtask, group, content)
        }

    def _changes(self, old: dict[Any, Entry], new: dict[Any, Entry]) -> Iterator[Change]:
        for place, entry in old.items():
            if place not in new:
                yield Change(*entry[:3], "removed", entry.value, None, entry.time, None, entry.group)
            elif not _equal(entry.value, new[place].value):
                now = new[place]
                yield Change(*entry[:3], "changed", entry.value, now.value, entry.time, now.time, entry.group)
        for place, entry in new.items():
            if place not in old:
                yield Change(*entry[:3], "added", None, entry.value, None, entry.time, entry.group)


def _equal(one: Any, other: Any) -> bool:
    """Objects that do not say what makes them equal are so if they are stored as the same bytes; NaN is one of them."""
    return bool(one == other) or (type(one) is type(other) and _pickle(one) == _pickle(other))


# -- frames --------------------------------------------------------------------------------------------------


def _resolve(
    session: SparkSession,
    state: StateId,
    rows: Any,
    parts: Sequence[Any],
    columns: list[Column],
    given: dict[str, Any],
) -> list[Column]:
    """The columns with their types, as declared or as a pass over everything finds them."""
    declared: dict[str, Declared] = {role: declared_type(kind, f"{role}_type") for role, kind in given.items()}
    if state.kind == "subtask" and declared["value"] is None:
        declared["value"] = REPR  # of no use but to be looked at
    roles = sorted({column.type for column in columns if isinstance(column.type, str)})
    unknown = {role: [c.at for c in columns if c.type == role] for role in roles if declared[role] is None}
    if unknown:
        description = f"types of {state}"
        shapes = run_parts(session, _Inferring(rows, unknown), parts, description)
        for role in unknown:
            shape = VOID
            for found in shapes:
                shape = unite(shape, found[role])
            declared[role] = check_fits(shape, role.replace("_", " "), f"{role}_type", str(state))
    return [_typed(column, declared) for column in columns]


def _typed(column: Column, declared: dict[str, Declared]) -> Column:
    if not isinstance(column.type, str):
        return column
    kind = declared[column.type]
    if isinstance(kind, spark.DataType):
        return replace(column, type=kind)
    return replace(column, type=_STRING, show=repr)


@dataclass(frozen=True)
class _Inferring:
    """Finds the shapes of what is in some columns of a part."""

    rows: Any
    places: dict[str, list[int]]

    def __call__(self, part: Any) -> dict[str, Shape]:
        shapes = dict.fromkeys(self.places, VOID)
        for batch in _batches(self.rows(part)):
            for role, places in self.places.items():
                values = [row[at] for at in places for row in batch]
                shapes[role] = unite(shapes[role], shape_of(values))
        return shapes


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


def _frame(session: SparkSession, rows: Any, parts: Sequence[Any], columns: list[Column]) -> DataFrame:
    schema = spark.StructType(
        [spark.StructField(column.name, column.type) for column in columns]  # type: ignore[arg-type]
    )
    if not parts:
        return session.createDataFrame([], schema)
    emit = Shipped.of(_Emitting(rows, list(parts), columns, arrow_schema(schema)))
    return map_in_arrow(session.range(0, len(parts), 1, len(parts)), emit, schema)


@dataclass(frozen=True)
class _Emitting:
    """Gives the rows of parts as Arrow batches."""

    rows: Any
    parts: list[Any]
    columns: list[Column]
    schema: pyarrow.Schema

    def __call__(self, batches: Batches) -> Batches:
        records = RecordColumns(self.schema)
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for rows in _batches(self.rows(self.parts[index])):
                    yield from self._table(records, rows).to_batches()

    def _table(self, records: RecordColumns, rows: list[Any]) -> pyarrow.Table:
        shown = [self._values(column, rows) for column in self.columns]
        try:
            return records.table(list(zip(*shown, strict=True)))
        except TypeMismatchError as error:
            raise StateError(
                f"{self.rows.state} does not fit the types that were given for it: {error}. Leave key_type, map_key_type or "
                f"value_type out to have it found, or give 'repr' to see objects as text"
            ) from error

    @staticmethod
    def _values(column: Column, rows: list[Any]) -> list[Any]:
        at, show = column.at, column.show
        if show is None:
            return [row[at] for row in rows]
        return [None if row[at] is None and show is not _pickle else show(row[at]) for row in rows]


def _pickle(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
