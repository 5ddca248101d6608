"""What there is to know about a setting: its key, what its values are, its default, and what it is for."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from firesteel.common.config_options import to_bool, to_float, to_int
from firesteel.common.durations import parse_duration_ms
from firesteel.common.sizes import parse_size

E = TypeVar("E", bound=enum.Enum)
T = TypeVar("T")


@dataclass(frozen=True)
class Kind:
    """What values are, and how they are read. `parse` raises ValueError."""

    name: str
    parse: Callable[[str], Any]


def _reading(parse: Callable[[str], Any], complaint: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            raise ValueError(complaint) from None

    return read


TEXT = Kind("text", str)
PATH = Kind("path", str)
BOOLEAN = Kind("true or false", to_bool)
INTEGER = Kind("integer", _reading(to_int, "it is no whole number"))
NUMBER = Kind("number", _reading(to_float, "it is no number"))
DURATION = Kind("duration", parse_duration_ms)
SIZE = Kind("size", parse_size)


def _list(separator: str) -> Kind:
    return Kind(
        f"list, divided by {separator}", lambda text: [part.strip() for part in text.split(separator) if part.strip()]
    )


LIST = _list(";")
COMMA_LIST = _list(",")


def choice(kind: type[E]) -> Kind:
    """A member of an enum, however it is written: `exactly-once` is EXACTLY_ONCE."""
    names = [member.name for member in kind]

    def parse(text: str) -> E:
        try:
            return kind[text.upper().replace("-", "_")]
        except KeyError:
            raise ValueError(f"known are {', '.join(names)}") from None

    return Kind(" or ".join(names), parse)


def _map(text: str) -> dict[str, str]:
    """`key:value,key:value`; a value may be in single quotes to hold a comma."""
    pairs: dict[str, str] = {}
    for part in _split_outside_quotes(text):
        key, colon, value = part.partition(":")
        if not colon:
            raise ValueError(f"{part!r} is not of the form key:value")
        pairs[key.strip().strip("'")] = value.strip().strip("'")
    return pairs


def _split_outside_quotes(text: str) -> list[str]:
    parts, quoted = [""], False
    for character in text:
        quoted ^= character == "'"
        if character == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


MAP = Kind("key:value,key:value", _map)


@dataclass(frozen=True)
class Option(Generic[T]):
    """One setting of a T."""

    key: str
    kind: Kind
    default: str  # as it would be written; empty for none
    description: str
    apply: Callable[[T, Any], object]  # raises ValueError for a value that cannot be
    older: tuple[str, ...] = ()  # names that it had in Flink before
    flinks: bool = False  # about Flink's own processes: in Flink's files it means nothing, and elsewhere it is refused

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return variable_of(self.key)

    def read(self, text: str) -> Any:
        """The value of a text.

        :raises ValueError: it cannot be one.
        """
        return self.kind.parse(text)


def variable_of(key: str) -> str:
    """FIRESTEEL_ and the key in capitals, with _ for each dot and dash."""
    return "FIRESTEEL_" + key.removeprefix("firesteel.").upper().replace(".", "_").replace("-", "_")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """What somebody who wrote `name` probably meant."""
    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else None
