"""Settings of a job by key, each with the type that it was set with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

from firesteel.common.config_options import ConfigOption, to_bool, to_float, to_int, to_text

__all__ = ["Configuration"]

T = TypeVar("T")
D = TypeVar("D")


class Configuration:
    """Key/value settings. Every getter reads a value that was set as text, so `"4"` is an integer too.

    A value that cannot be read as what is asked for raises ValueError; it is never replaced by the default.
    As in PyFlink, a configuration hashes by its contents: do not change one that is a key.
    """

    def __init__(self, other: Configuration | None = None) -> None:
        self._values: dict[str, Any] = dict(other._values) if other is not None else {}

    @classmethod
    def from_dict(cls, map: Mapping[str, str]) -> Configuration:
        configuration = cls()
        for key, value in map.items():
            configuration.set_string(key, value)
        return configuration

    def get(self, option: ConfigOption[T], default_value: T | None = None) -> T | None:
        """The option's value, else `default_value`, else the option's own default."""
        fallback = option.default if default_value is None else default_value
        return self._read(option.key, option.convert, fallback)

    def set(self, option: ConfigOption[T], value: T) -> Configuration:
        return self._write(option.key, option.convert(value))

    def get_string(self, key: str, default_value: D) -> str | D:
        return self._read(key, to_text, default_value)

    def set_string(self, key: str, value: str) -> Configuration:
        if not isinstance(value, str):
            raise TypeError(f"The value of {key!r} must be a str, not {value!r}")
        return self._write(key, value)

    def get_integer(self, key: str, default_value: D) -> int | D:
        return self._read(key, to_int, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        return self._write(key, int(value))

    def get_boolean(self, key: str, default_value: D) -> bool | D:
        return self._read(key, to_bool, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        return self._write(key, bool(value))

    def get_float(self, key: str, default_value: D) -> float | D:
        return self._read(key, to_float, default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        return self._write(key, float(value))

    def get_bytearray(self, key: str, default_value: D) -> bytearray | D:
        return self._read(key, _to_bytes, default_value)

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        return self._write(key, bytes(value))

    def contains_key(self, key: str) -> bool:
        return key in self._values

    def key_set(self) -> AbstractSet[str]:
        return {*self._values}

    def remove_config(self, key: str) -> bool:
        """Whether there was such a key."""
        return self._values.pop(key, None) is not None

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        self._values.update({(prefix or "") + key: value for key, value in other._values.items()})
        return self

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put every setting into `target_dict`, with the type that it was set with."""
        target_dict.update(self._values)

    def to_dict(self) -> dict[str, str]:
        """Every setting as text."""
        return {key: to_text(value) for key, value in self._values.items()}

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The parts of `"a;b"` or `"[a, b]"`."""
        text = value.strip()
        bracketed = text.startswith("[") and text.endswith("]")
        parts = text[1:-1].split(",") if bracketed else text.split(";")
        return [part.strip().strip("'\"") for part in parts if part.strip()]

    def _read(self, key: str, convert: Callable[[object], T], default_value: D) -> T | D:
        if key not in self._values:
            return default_value
        try:
            return convert(self._values[key])
        except ValueError as e:
            raise ValueError(f"Could not parse value {self._values[key]!r} for key {key!r}: {e}") from None

    def _write(self, key: str, value: object) -> Configuration:
        self._values[key] = value
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Configuration:
        return Configuration(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __str__(self) -> str:
        return "{" + ", ".join(f"{key}={value}" for key, value in sorted(self.to_dict().items())) + "}"

    def __repr__(self) -> str:
        return f"Configuration({self})"


def _to_bytes(value: object) -> bytearray:
    return bytearray(value if isinstance(value, bytes) else to_text(value).encode("latin-1"))
