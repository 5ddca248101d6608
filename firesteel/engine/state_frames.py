"""States of checkpoints and savepoints as DataFrames: `firesteel.state.read` and `firesteel.state.diff`.

A partition reads some key groups of one slot's chain of files; nothing but a sample and types comes to the driver. Types
that are not declared are found by a pass over the whole state, as `spark.read.json` does, so that no query fails halfway
because of a value that does not fit.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from firesteel.connectors.dataframe_columns import RecordColumns
from firesteel.coordinator.inspecting import CheckpointStates, open_states
from firesteel.datastream.window import CountWindow, TimeWindow
from firesteel.engine.dataframes import arrow_schema
from firesteel.engine.spark_private import map_in_arrow
from firesteel.engine.state_types import REPR, VOID, Declared, Shape, check_fits, declared_type, shape_of, unite
from firesteel.engine.state_workers import Batches, Shipped, check_session, run_parts
from firesteel.errors import StateError, TypeMismatchError
from firesteel.state.reading import Entry, Slice, StateId, entries

_BATCH = 8192
_LOOKED_AT = 1000

LONG, INT, STRING, _BINARY = spark.LongType(), spark.IntegerType(), spark.StringType(), spark.BinaryType()
_PARTS: dict[str, tuple[str, spark.DataType | str]] = {
    "list": ("position", LONG),
    "map": ("map_key", "map_key"),
    "timers": ("timestamp", LONG),
    "operator-list": ("position", LONG),
    "operator-union": ("position", LONG),
    "raw": ("position", LONG),
    "broadcast": ("map_key", "map_key"),
    "subtask": ("name", STRING),
}
"""Kind of state -> the column for what tells the entries of one key apart, and its type, which may be one to be found."""


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
    check_session(session)
    states = open_states(path)
    state = states.find(uid, name)
    columns = _columns(state, first_entry(states, state))
    if pickled:
        columns += [
            Column(f"{c.name}_pickle", c.at, _BINARY, pickled_bytes) for c in columns if isinstance(c.type, str)
        ]
    given = {"key": key_type, "map_key": map_key_type, "value": value_type}
    parts = states.parts(state, session.sparkContext.defaultParallelism)
    rows = _Reading(state)
    return make_frame(session, rows, parts, resolve(session, state, rows, parts, columns, given))


def first_entry(states: CheckpointStates, state: StateId) -> Entry | None:
    """An entry of a state, for what it looks like, and one with a value if there is one near; None if there are none."""
    found = list(islice((entry for piece in states.slices(state) for entry in entries(state, piece)), _LOOKED_AT))
    return next((entry for entry in found if entry.value is not None), found[0] if found else None)


def _columns(state: StateId, sample: Entry | None) -> list[Column]:
    columns = place_columns(state, sample)
    if state.layout != "timers":
        columns.append(Column("value", Entry._fields.index("value"), "value"))
    if state.ttl:
        columns.append(Column("last_access", Entry._fields.index("time"), LONG))
    if state.keyed:
        columns.append(Column("key_group", Entry._fields.index("group"), INT))
    return columns


def place_columns(state: StateId, sample: Entry | None) -> list[Column]:
    """The columns that say where an entry is. They are at the same places in entries and changes."""
    columns = []
    if state.keyed:
        columns.append(Column("key", 0, "key"))
        if sample is not None and sample.window is not None:
            columns.append(_window(sample.window))
    elif state.layout != "broadcast":
        columns.append(Column("subtask", 0, INT))
    if state.layout in _PARTS:
        name, kind = _PARTS[state.layout]
        columns.append(Column(name, 2, kind))
    return columns


def _window(sample: Any) -> Column:
    if isinstance(sample, TimeWindow):
        return Column("window", 1, spark.StructType().add("start", LONG).add("end", LONG))
    if isinstance(sample, CountWindow):
        return Column("window", 1, spark.StructType().add("id", LONG))
    return Column("window", 1, STRING, repr)


@dataclass(frozen=True)
class _Reading:
    """Gives the entries of a part."""

    state: StateId

    def __call__(self, part: Sequence[Slice]) -> Iterator[Entry]:
        return chain.from_iterable(entries(self.state, piece) for piece in part)


# -- frames --------------------------------------------------------------------------------------------------


def resolve(
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
    return replace(column, type=STRING, show=repr)


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


def make_frame(session: SparkSession, rows: Any, parts: Sequence[Any], columns: list[Column]) -> DataFrame:
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
        return [None if row[at] is None and show is not pickled_bytes else show(row[at]) for row in rows]


def pickled_bytes(value: Any) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
