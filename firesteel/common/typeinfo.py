"""Declared types of records and of state: frozen values, comparable, hashable, shown as PyFlink shows them.

Firesteel works on Python objects, so a declaration converts nothing. It says how `print()` shows a value,
what a connector may expect, and (`is_plain`) whether stored values can be read back without loading classes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "BasicArrayTypeInfo",
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PickledBytesTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
    "TupleTypeInfo",
    "TypeInformation",
    "Types",
]


class TypeInformation(ABC):
    """What is declared about the values of a stream, a state or a field."""

    @abstractmethod
    def is_plain(self) -> bool:
        """Whether values are only None, bool, int, float, str, bytes, and tuples, lists and dicts of those.

        Plain values can be decoded by an unpickler that refuses every class. The declaration is the user's
        word, not a fact: nothing stops a function from returning a numpy number for `Types.INT()`, so whoever
        stores such values has to check them.
        """


class BasicType(Enum):
    """The types without fields or elements. The values are the names that PyFlink shows."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


_CLASS_VALUED = frozenset({BasicType.BIG_DEC, BasicType.INSTANT})
_NUMBERS_AND_CHAR = frozenset(BasicType) - _CLASS_VALUED - {BasicType.STRING, BasicType.BIG_INT}


@dataclass(frozen=True, repr=False)
class BasicTypeInfo(TypeInformation):
    """A number, a boolean, a string, or an instant."""

    basic_type: BasicType

    def is_plain(self) -> bool:
        return self.basic_type not in _CLASS_VALUED

    def __repr__(self) -> str:
        return self.basic_type.value


@dataclass(frozen=True, repr=False)
class _NotPlain(TypeInformation):
    def is_plain(self) -> bool:
        return False

    def __repr__(self) -> str:
        return type(self).__name__


class DateTypeInfo(_NotPlain):
    """`datetime.date`."""


class TimeTypeInfo(_NotPlain):
    """`datetime.time`."""


class TimestampTypeInfo(_NotPlain):
    """`datetime.datetime`."""


class PickledBytesTypeInfo(_NotPlain):
    """Any Python object. What a stream or state has when nothing is declared."""

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


@dataclass(frozen=True, repr=False)
class _ElementsTypeInfo(TypeInformation):
    """A type of many elements of one type."""

    element_type: TypeInformation

    def __post_init__(self) -> None:
        _check_types(type(self).__name__, [self.element_type])

    def is_plain(self) -> bool:
        return self.element_type.is_plain()

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.element_type!r}>"


class ListTypeInfo(_ElementsTypeInfo):
    """A list."""

    @property
    def elem_type(self) -> TypeInformation:
        """`element_type` under PyFlink's name for it."""
        return self.element_type


class ObjectArrayTypeInfo(_ElementsTypeInfo):
    """A list of anything, None included."""


class PrimitiveArrayTypeInfo(_ElementsTypeInfo):
    """A list of numbers, booleans or characters, or bytes."""

    _allowed = frozenset(BasicTypeInfo(basic) for basic in _NUMBERS_AND_CHAR)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.element_type not in self._allowed:
            raise TypeError(
                f"{type(self).__name__} cannot have elements of type {self.element_type!r}; "
                "declare Types.OBJECT_ARRAY(...) or Types.LIST(...) instead"
            )


class BasicArrayTypeInfo(PrimitiveArrayTypeInfo):
    """A list of numbers, booleans, characters or strings."""

    _allowed = PrimitiveArrayTypeInfo._allowed | {BasicTypeInfo(BasicType.STRING)}


@dataclass(frozen=True, repr=False)
class MapTypeInfo(TypeInformation):
    """A dict."""

    key_type: TypeInformation
    value_type: TypeInformation

    def __post_init__(self) -> None:
        _check_types("MapTypeInfo", [self.key_type, self.value_type])

    def is_plain(self) -> bool:
        return self.key_type.is_plain() and self.value_type.is_plain()

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type!r}, {self.value_type!r}>"


@dataclass(frozen=True, repr=False)
class TupleTypeInfo(TypeInformation):
    """A tuple of fixed length."""

    field_types: Sequence[TypeInformation]

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_types", tuple(self.field_types))
        _check_types("TupleTypeInfo", self.field_types)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self.field_types)

    def is_plain(self) -> bool:
        return all(field_type.is_plain() for field_type in self.field_types)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self.field_types))})"


@dataclass(frozen=True, repr=False)
class RowTypeInfo(TypeInformation):
    """A `Row`. As in Flink, two row types are equal when their field types are; names do not count."""

    field_types: Sequence[TypeInformation]
    field_names: Sequence[str] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "field_types", tuple(self.field_types))
        _check_types("RowTypeInfo", self.field_types)
        if self.field_names is not None:
            object.__setattr__(self, "field_names", tuple(self.field_names))
            if len(self.field_names) != len(self.field_types):
                raise ValueError(
                    f"RowTypeInfo has {len(self.field_types)} field types, "
                    f"but {len(self.field_names)} field names: {list(self.field_names)}"
                )
            if len(set(self.field_names)) != len(self.field_names):
                raise ValueError(f"RowTypeInfo has a field name twice: {list(self.field_names)}")

    def get_field_names(self) -> list[str]:
        """The declared names, or f0, f1, ... for a row declared without names."""
        if self.field_names is None:
            return [f"f{i}" for i in range(len(self.field_types))]
        return list(self.field_names)

    def get_field_index(self, field_name: str) -> int:
        """The position of a name; -1 for a row declared without names."""
        return -1 if self.field_names is None else self.field_names.index(field_name)

    def get_field_types(self) -> list[TypeInformation]:
        return list(self.field_types)

    def is_plain(self) -> bool:
        return False

    def __repr__(self) -> str:
        if self.field_names is None:
            return f"RowTypeInfo({', '.join(map(repr, self.field_types))})"
        fields = zip(self.field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {field_type!r}' for name, field_type in fields)})"


def _check_types(owner: str, types: Sequence[TypeInformation]) -> None:
    for declared in types:
        if not isinstance(declared, TypeInformation):
            name = getattr(declared, "__name__", None)
            hint = f": write Types.{name}() with parentheses" if name and hasattr(Types, name) else ""
            raise TypeError(f"{owner} is made of TypeInformation, not {declared!r}{hint}")


class Types:
    """PyFlink's factories for type declarations."""

    @staticmethod
    def STRING() -> TypeInformation:
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        return BasicTypeInfo(BasicType.INSTANT)

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        return ListTypeInfo(element_type_info)
