"""Keyed state as functions see it: descriptors name it, handles read and write it for the current key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from firesteel.common.typeinfo import TypeInformation

T = TypeVar("T")


class State(ABC):
    """State of the current key."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the current key's value."""


class ValueState(State, Generic[T]):
    """One value for each key.

    Changing a value in place is not seen by checkpoints; always call `update`.
    """

    @abstractmethod
    def value(self) -> T | None:
        """The current key's value, None when there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the current key's value; None removes it."""


class StateDescriptor(ABC):
    """A state's name, unique within its operator, and the type of what it holds."""

    kind: str

    def __init__(self, name: str, type_info: TypeInformation | None = None) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError(f"a state's name must be a non-empty string, not {name!r}")
        self.name = name
        self.type_info = type_info

    def get_name(self) -> str:
        return self.name


class ValueStateDescriptor(StateDescriptor):
    """Describes a `ValueState`."""

    kind = "value"

    def __init__(self, name: str, value_type_info: TypeInformation | None = None) -> None:
        super().__init__(name, value_type_info)
