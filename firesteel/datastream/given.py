"""What users give to a stream's methods, checked; and the small functions that methods stand for."""

from __future__ import annotations

from typing import Any

from firesteel.common.time import Duration, Time
from firesteel.common.typeinfo import RowTypeInfo, TypeInformation
from firesteel.datastream.functions import Function
from firesteel.errors import GraphError

OutputType = TypeInformation | list[TypeInformation] | None
"""How an operator's output type is declared; a list stands for a row of those types."""


def check_output_type(output_type: Any) -> TypeInformation | None:
    """An output type as the user gave it."""
    if isinstance(output_type, list):
        return RowTypeInfo(output_type)
    if output_type is not None and not isinstance(output_type, TypeInformation):
        raise GraphError(
            f"an output type must be a TypeInformation such as Types.INT(), a list of them, or None, not {output_type!r}"
        )
    return output_type


def check_function(func: Any, kind: type[Function], method: str) -> Any:
    """A function as the user gave it: one of that class, or any callable."""
    if isinstance(func, type) and issubclass(func, Function):
        raise GraphError(f"{method}() takes an instance: write {func.__name__}(...), not the class {func.__name__}")
    if not isinstance(func, kind) and (not callable(func) or isinstance(func, Function)):
        raise GraphError(f"{method}() takes a {kind.__name__} or a function, not {func!r:.200}")
    return func


class Projection:
    """Fields of a tuple as a tuple; a class, so that it can be pickled."""

    def __init__(self, indexes: tuple[int, ...]) -> None:
        self._indexes = indexes

    def __call__(self, value: Any) -> tuple[Any, ...]:
        return tuple([value[index] for index in self._indexes])


def same(value: Any) -> Any:
    return value


def check_millis(what: str, given: Any) -> int:
    """An amount of time as the user gave it, in milliseconds."""
    if isinstance(given, Time):
        return given.to_milliseconds()
    if isinstance(given, Duration):
        return given.to_millis()
    raise GraphError(f"{what} must be a Time or a Duration such as Time.seconds(10), not {given!r:.200}")
