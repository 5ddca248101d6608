"""Rows of a DataFrame on their way into a state: what they have to look like, and the entries they become."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from firesteel.datastream.window import CountWindow, GlobalWindow, TimeWindow
from firesteel.engine.spark_private import is_classic
from firesteel.engine.state_objects import Make, maker
from firesteel.engine.state_workers import Batches, failure
from firesteel.errors import FiresteelError, InvalidKeyError, StateError
from firesteel.graph.keys import KeyGroups, encode_key, subtask_of
from firesteel.state.files import BROADCAST, LIST, NO_GROUP, RAW, UNION
from firesteel.state.layouts import TTL
from firesteel.state.reading import Entry, StateId, layout_of
from firesteel.state.store import WINDOWS

NO_STATE, FAILED = -1, -2
"""In the place of a state's number, in rows that hold no entry, and in those that say why there is none."""

ENCODED = spark.StructType(
    [
        spark.StructField("slot", spark.IntegerType()),
        spark.StructField("state", spark.IntegerType()),
        spark.StructField("group", spark.IntegerType()),
        spark.StructField("identity", spark.BinaryType()),
        spark.StructField("position", spark.LongType()),
        spark.StructField("part", spark.BinaryType()),
        spark.StructField("entry", spark.BinaryType()),
    ]
)
"""Entries on their way to the slots: state.rewriting.NewEntry, and before it the slot."""

_ARROW = pyarrow.schema(
    [
        ("slot", pyarrow.int32()),
        ("state", pyarrow.int32()),
        ("group", pyarrow.int32()),
        ("identity", pyarrow.binary()),
        ("position", pyarrow.int64()),
        ("part", pyarrow.binary()),
        ("entry", pyarrow.binary()),
    ]
)

_PART_COLUMNS = {
    "list": "position", "map": "map_key", "timers": "timestamp", LIST: "position", UNION: "position", RAW: "position",
    BROADCAST: "map_key",
}  # fmt: skip
_LAYOUTS = ("value", "reducing", "aggregating", *_PART_COLUMNS)
_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_IGNORED = ("key_group",)
_OBJECTS = ("key", "map_key", "value")
_PICKLE = "_pickle"


@dataclass(frozen=True)
class StateRows:
    """A DataFrame that is to become a state, checked as far as its columns tell."""

    state: StateId
    frame: DataFrame | None
    columns: tuple[str, ...]
    makers: dict[str, Make]  # for key, window, map_key and value
    parallelism: int
    max_parallelism: int

    @staticmethod
    def of(
        uid: str,
        name: str,
        frame: DataFrame,
        kind: str | None,
        known: StateId | None,
        pattern: Entry | None,
        functions: dict[str, Callable[[Any], Any] | None],
        parallelism: int,
        max_parallelism: int,
    ) -> StateRows:
        """
        :param known: the state in whose place it comes, if there is one.
        :param pattern: an entry of that.
        :raises StateError: the columns cannot become such a state.
        """
        what = f"state {name!r} of operator {uid}"
        if not isinstance(frame, DataFrame) or not is_classic(frame) or frame.isStreaming:
            raise StateError(f"{what} is made of a DataFrame, classic and not streaming, not of {frame!r:.200}")
        types = {field.name: field.dataType for field in frame.schema.fields if field.name not in _IGNORED}
        state = StateId(uid, name, _kind(what, kind, known, types))
        columns = _check_columns(state, types)
        patterns: dict[str, Any] = {}
        if known is not None and pattern is not None and known.keyed == state.keyed:
            _check_window(state, pattern, "window" in columns)
            patterns["key"] = pattern.key
            if known.layout == state.layout:
                patterns |= {"map_key": pattern.part, "value": pattern.value}
        makers: dict[str, Make] = {}
        for column in columns:
            role = column.removesuffix(_PICKLE)
            if column.endswith(_PICKLE):
                makers[role] = _unpickle
            elif role in _OBJECTS:
                if (function := functions[role]) is not None:
                    makers[role] = _Then(maker(types[column], None, False, column, what, role), function)
                else:
                    makers[role] = maker(types[column], patterns.get(role), role in patterns, column, what, role)
            elif role == "window":
                makers[role] = _windows(types[column], what)
        unused = [role for role, function in functions.items() if function is not None and role not in makers]
        if unused:
            raise StateError(f"{what} has no column {unused[0]} that a function could be applied to")
        return StateRows(state, frame, columns, makers, parallelism, max_parallelism)

    def selected(self) -> DataFrame:
        assert self.frame is not None
        if not self.state.keyed and self.state.kind != BROADCAST and "position" not in self.columns:
            return self.frame.select(*self.columns, F.monotonically_increasing_id().alias("position"))
        return self.frame.select(*self.columns)

    def without_frame(self) -> StateRows:
        """The same for workers, where there are no DataFrames."""
        return replace(self, frame=None)


def _kind(what: str, given: str | None, known: StateId | None, types: dict[str, spark.DataType]) -> str:
    if given is None and known is not None:
        return known.kind
    keyed = "key" in types or f"key{_PICKLE}" in types
    mapped = "map_key" in types or f"map_key{_PICKLE}" in types
    if given is None:
        if not keyed:
            given = BROADCAST if mapped else LIST
        elif mapped:
            given = "map"
        elif "position" in types:
            given = "list"
        else:
            given = "timers" if "timestamp" in types else "value"
    if layout_of(given) not in _LAYOUTS:
        raise StateError(
            f"{what} cannot be of kind {given!r}. Kinds are {', '.join(_LAYOUTS)}; {TTL} and {WINDOWS} may follow them"
        )
    if "last_access" in types and not given.removesuffix(WINDOWS).endswith(TTL):
        windows = given.endswith(WINDOWS)
        given = given.removesuffix(WINDOWS) + TTL + (WINDOWS if windows else "")
    return given


def _check_columns(state: StateId, types: dict[str, spark.DataType]) -> tuple[str, ...]:
    """The columns that the state is made of."""
    wanted = ["key"] if state.keyed else []
    if state.layout in _PART_COLUMNS and (state.keyed or state.kind == BROADCAST):
        wanted.append(_PART_COLUMNS[state.layout])
    if state.layout != "timers":
        wanted.append("value")
    if state.ttl:
        wanted.append("last_access")
    if state.kind.endswith(WINDOWS):
        wanted.append("window")
    allowed = {*wanted, *(("window",) if state.keyed else ("subtask", "position"))}
    if state.kind == BROADCAST:
        allowed = {*wanted}
    columns = []
    for name in dict.fromkeys([*wanted, *sorted(allowed)]):
        found = [each for each in (name, f"{name}{_PICKLE}") if each in types and (each == name or name in _OBJECTS)]
        if len(found) > 1:
            raise StateError(
                f"the DataFrame for {state} has {found[0]} and {found[1]}, and only one of them can be meant: drop the other"
            )
        if not found and name in wanted:
            advice = ": when each was last used, in milliseconds since 1970" if name == "last_access" else ""
            raise StateError(
                f"the DataFrame for {state}, which is {state.kind} state, has no column {name}{advice}. It has: "
                f"{', '.join(types) or 'none'}"
            )
        columns += found
    unknown = [name for name in types if name not in columns]
    if unknown:
        raise StateError(
            f"the DataFrame for {state}, which is {state.kind} state, has columns that mean nothing to it: "
            f"{', '.join(unknown)}. Drop them, or call them {', '.join(sorted(allowed))}"
        )
    for name in ("position", "timestamp", "last_access", "subtask"):
        if name in columns and not isinstance(types[name], _INTEGERS):
            raise StateError(
                f"the column {name} of the DataFrame for {state} is {types[name].simpleString()}, and has to be a BIGINT"
            )
    if state.kind == RAW and "value" in columns and not isinstance(types["value"], spark.BinaryType):
        raise StateError(f"raw state is bytes, and the column value of the DataFrame for {state} is no BINARY")
    return tuple(columns)


def _check_window(state: StateId, pattern: Entry, given: bool) -> None:
    """State of windows must not become state of keys, or vice versa: nobody would find it."""
    if given == (pattern.window is not None):
        return
    has, wants = ("has a", "none") if given else ("has no", "one")
    raise StateError(
        f"the DataFrame for {state} {has} column window, and what is there already has {wants}: it is under the key "
        f"{pattern.key!r:.200}" + (f" and the window {pattern.window!r:.200}" if pattern.window is not None else "")
    )


def _unpickle(data: Any) -> Any:
    return pickle.loads(data)


@dataclass(frozen=True)
class _Then:
    """A function of the user's on what a column's value becomes."""

    make: Make
    function: Callable[[Any], Any]

    def __call__(self, value: Any) -> Any:
        return self.function(self.make(value))


def _windows(kind: spark.DataType, what: str) -> Make:
    if isinstance(kind, spark.StructType) and kind.names == ["start", "end"]:
        return lambda window: TimeWindow(window["start"], window["end"])
    if isinstance(kind, spark.StructType) and kind.names == ["id"]:
        return lambda window: CountWindow(window["id"])
    if isinstance(kind, spark.StringType):
        return _named_window
    raise StateError(
        f"the column window of the DataFrame for {what} is {kind.simpleString()}. It is a struct of start and end, or of id, "
        f"or the text GlobalWindow"
    )


def _named_window(name: Any) -> Any:
    if name != repr(GlobalWindow.get()):
        raise StateError(f"{name!r:.200} is no window that can be written: of those shown as text only GlobalWindow is")
    return GlobalWindow.get()


@dataclass(frozen=True)
class Encoding:
    """Makes entries of rows."""

    rows: StateRows
    index: int  # the state's

    def __call__(self, batches: Batches) -> Batches:
        groups = KeyGroups(self.rows.max_parallelism)
        for batch in batches:
            columns = dict(zip(batch.schema.names, (column.to_pylist() for column in batch.columns), strict=True))
            try:
                encoded = list(self._encoded(columns, batch.num_rows, groups))
            except FiresteelError as error:
                encoded = [(0, FAILED, 0, b"", 0, b"", failure(error))]
            arrays = zip(*encoded, strict=True) if encoded else ((),) * len(_ARROW)
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array(list(values), field.type) for values, field in zip(arrays, _ARROW, strict=True)],
                schema=_ARROW,
            )

    def _encoded(self, columns: dict[str, list[Any]], count: int, groups: KeyGroups) -> Iterator[tuple[Any, ...]]:
        keyed, layout = self.rows.state.keyed, self.rows.state.layout
        made = {name.removesuffix(_PICKLE): self._made(name, values) for name, values in columns.items()}
        nothing = [None] * count
        parts = made.get(_PART_COLUMNS.get(layout, ""), nothing)
        values, times = made.get("value", nothing), made.get("last_access", nothing)
        keys, windows = made.get("key", nothing), made.get("window", nothing)
        subtasks = made.get("subtask", nothing)
        for key, window, part, value, time, subtask in zip(keys, windows, parts, values, times, subtasks, strict=True):
            self._check(key, part, value, time)
            entry = pickle.dumps((key, window, part, value, time), protocol=pickle.HIGHEST_PROTOCOL)
            position, identity = (
                (0, self._canonical(part, "map key")) if "map" in layout or layout == BROADCAST else (part or 0, b"")
            )
            if keyed:
                group = self._group(groups, key)
                slot = subtask_of(group, self.rows.parallelism, self.rows.max_parallelism)
                place = encode_key(key) + (b"" if window is None else _window_bytes(window))
                yield slot, self.index, group, place, position, identity, entry
            else:
                for slot in self._slots(subtask, position):
                    yield slot, self.index, NO_GROUP, b"", position, identity, entry

    def _made(self, column: str, values: list[Any]) -> list[Any]:
        make = self.rows.makers.get(column.removesuffix(_PICKLE))
        if make is None:
            return values
        made: list[Any] = []
        try:
            made.extend(map(make, values))
        except FiresteelError:
            raise
        except Exception as error:
            raise StateError(
                f"a row of the DataFrame for {self.rows.state} cannot be stored: its {column} {values[len(made)]!r:.200} fails "
                f"with {type(error).__name__}: {error}"
            ) from error
        return made

    def _check(self, key: Any, part: Any, value: Any, time: Any) -> None:
        state = self.rows.state
        missing = None
        if value is None and state.layout not in ("timers", "map", BROADCAST):
            missing = "value"
        elif part is None and state.layout in _PART_COLUMNS and state.layout not in ("map", BROADCAST):
            missing = _PART_COLUMNS[state.layout]
        elif time is None and state.ttl:
            missing = "last_access"
        if missing is not None:
            at = f" for the key {key!r:.200}" if state.keyed else ""
            raise StateError(
                f"the DataFrame for {state} has a row{at} whose {missing} is null, which cannot be stored. Filter such rows "
                f"out: what is not there has no row"
            )

    def _group(self, groups: KeyGroups, key: Any) -> int:
        try:
            return groups.of(key)
        except InvalidKeyError as error:
            raise InvalidKeyError(f"a row of the DataFrame for {self.rows.state} cannot be stored: {error}") from None

    def _canonical(self, part: Any, what: str) -> bytes:
        try:
            return encode_key(part)
        except InvalidKeyError as error:
            raise InvalidKeyError(
                f"a row of the DataFrame for {self.rows.state} cannot be stored, because of its {what}: {error}"
            ) from None

    def _slots(self, subtask: int | None, position: int) -> range:
        parallelism = self.rows.parallelism
        if self.rows.state.kind == BROADCAST:
            return range(parallelism)
        if subtask is None:
            subtask = position % parallelism
        if not 0 <= subtask < parallelism:
            raise StateError(
                f"the DataFrame for {self.rows.state} has a row for subtask {subtask}, and there are {parallelism}"
            )
        return range(subtask, subtask + 1)


def _window_bytes(window: Any) -> bytes:
    return encode_key(tuple(window)) if isinstance(window, tuple) else repr(window).encode()
