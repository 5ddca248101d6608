"""Settings with a key, a type and maybe a default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["ConfigOption", "ConfigOptions"]

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """One setting. `convert` turns a stored text or value into the option's type, or raises ValueError."""

    key: str
    convert: Callable[[object], T]
    default: T | None = None


class ConfigOptions:
    """Builds options: `ConfigOptions.key("tmp.dir").string_type().default_value("/tmp")`."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        return ConfigOptions.OptionBuilder(key)

    @dataclass(frozen=True)
    class OptionBuilder:
        """An option that still needs a type."""

        key: str

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            return ConfigOptions.TypedConfigOptionBuilder(self.key, to_bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self.key, to_int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            return ConfigOptions.TypedConfigOptionBuilder(self.key, to_int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self.key, to_float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            return ConfigOptions.TypedConfigOptionBuilder(self.key, to_float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            return ConfigOptions.TypedConfigOptionBuilder(self.key, to_text)

    @dataclass(frozen=True)
    class TypedConfigOptionBuilder(Generic[T]):
        """An option that still needs a default, or the word that it has none."""

        key: str
        convert: Callable[[object], T]

        def default_value(self, value: T) -> ConfigOption[T]:
            return ConfigOption(self.key, self.convert, value)

        def no_default_value(self) -> ConfigOption[T]:
            return ConfigOption(self.key, self.convert)


def to_text(value: object) -> str:
    """The text of a setting, as it would stand in a configuration file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def to_bool(value: object) -> bool:
    text = to_text(value).lower()
    if text not in ("true", "false"):
        raise ValueError(f"{value!r} is neither true nor false")
    return text == "true"


def to_int(value: object) -> int:
    return int(to_text(value))


def to_float(value: object) -> float:
    return float(to_text(value))
