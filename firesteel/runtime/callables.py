"""Function objects and plain functions alike, as callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.datastream.functions import KeySelector, Partitioner


def method_of(function: Any, kind: type, name: str) -> Any:
    """The method of a function object of that kind, or the plain function itself."""
    return getattr(function, name) if isinstance(function, kind) else function


def resolve_selector(selector: Any) -> Callable[[Any], Any]:
    call: Callable[[Any], Any] = method_of(selector, KeySelector, "get_key")
    return call


def resolve_partitioner(partitioner: Any) -> Callable[[Any, int], int]:
    call: Callable[[Any, int], int] = method_of(partitioner, Partitioner, "partition")
    return call
