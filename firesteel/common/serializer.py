"""Serializers that users write for their own types, such as the windows of a custom assigner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from io import BytesIO
from typing import Generic, TypeVar

__all__ = ["TypeSerializer"]

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    """Writes elements to a stream and reads them back. Equal when of one class with equal attributes."""

    @abstractmethod
    def serialize(self, element: T, stream: BytesIO) -> None: ...

    @abstractmethod
    def deserialize(self, stream: BytesIO) -> T: ...

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
