"""A statement with a `?` for each field of a record, as JDBC has it, and the values for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.common.typeinfo import RowTypeInfo
from firesteel.common.types import Row
from firesteel.errors import ConfigurationError, TypeMismatchError

Parameters = Sequence[Any]

# Where a question mark is text: strings, quoted names, comments, dollar quotes. Two of them are one that is an operator.
_PIECES = re.compile(
    r"""'(?:[^'\\]|''|\\.)*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/ | (?P<tag>\$\w*\$).*?(?P=tag)
        | (?P<operator>\?\?) | (?P<value>\?)""",
    re.VERBOSE | re.DOTALL,
)


class Statement:
    """A statement that is executed for every record."""

    def __init__(self, sql: str, type_info: RowTypeInfo) -> None:
        if not isinstance(sql, str) or not sql.strip():
            raise ConfigurationError(f"a JdbcSink takes a statement such as 'INSERT INTO t VALUES (?, ?)', not {sql!r}")
        if not isinstance(type_info, RowTypeInfo):
            raise ConfigurationError(f"a JdbcSink takes the type of its records as a Types.ROW(...), not {type_info!r}")
        self.sql = sql.strip().rstrip(";")
        self.names = type_info.field_names
        self.fields = len(type_info.field_types)
        self.count = sum(1 for piece in _PIECES.finditer(self.sql) if piece["value"])
        if self.count != self.fields:
            raise ConfigurationError(
                f"the statement has {self.count} placeholders and its type_info has {self.fields} fields. A placeholder is a "
                f"question mark, one for each field, in their order (and ?? is an operator): {self.sql}"
            )

    def formatted(self) -> str:
        """With `%s`, for drivers of Python."""
        return self._with("%s", "?", lambda text: text.replace("%", "%%"))

    def numbered(self) -> str:
        """With `$1`, `$2`, as PostgreSQL itself has it."""
        numbers = iter(range(1, self.count + 1))
        return self._with(lambda: f"${next(numbers)}", "?", str)

    def native(self) -> str:
        """With `?`, as MySQL itself has it."""
        return self._with("?", "?", str)

    def _with(self, value: str | Callable[[], str], operator: str, text: Callable[[str], str]) -> str:
        made, end = [], 0
        for piece in _PIECES.finditer(self.sql):
            made.append(text(self.sql[end : piece.start()]))
            if piece["value"]:
                made.append(value if isinstance(value, str) else value())
            else:
                made.append(operator if piece["operator"] else text(piece[0]))
            end = piece.end()
        made.append(text(self.sql[end:]))
        return "".join(made)

    def parameters(self, record: Any) -> Parameters:
        """The values of one record, by name where both it and the type have names.

        :raises TypeMismatchError: it has not as many fields as the statement.
        """
        if isinstance(record, Row):
            values: Any = record.get_fields_by_names(self.names) if self.names is not None else record
        elif isinstance(record, (tuple, list)):
            values = record
        else:
            raise TypeMismatchError(f"a JdbcSink takes rows and tuples, not {record!r:.200}", record=record)
        if len(values) != self.fields:
            raise TypeMismatchError(
                f"the record {record!r:.500} has {len(values)} fields, and the statement takes {self.fields}: {self.sql}",
                record=record,
            )
        return tuple(values)
