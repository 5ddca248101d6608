"""Function objects and plain functions alike, as callables."""

from __future__ import annotations

import dis
from collections.abc import Callable
from inspect import ismethod
from operator import attrgetter, itemgetter
from typing import Any

from firesteel.datastream.functions import KeySelector, Partitioner


def method_of(function: Any, kind: type, name: str) -> Any:
    """The method of a function object of that kind, or the plain function itself."""
    return getattr(function, name) if isinstance(function, kind) else function


def resolve_selector(selector: Any) -> Callable[[Any], Any]:
    """What gives a record's key, twice for each record. So `lambda record: record[0]` and `lambda record: record.id` become
    what does the same without calling a Python function."""
    call = given_selector(selector)
    return _getter(call) or call


def given_selector(selector: Any) -> Callable[[Any], Any]:
    """The same as the user wrote it."""
    call: Callable[[Any], Any] = method_of(selector, KeySelector, "get_key")
    return call


def _getter(call: Callable[[Any], Any]) -> Callable[[Any], Any] | None:
    code = getattr(call, "__code__", None)
    if code is None or code.co_argcount != 1 + ismethod(call):
        return None
    record = code.co_varnames[code.co_argcount - 1]
    instructions = [(each.opname, each.argval) for each in dis.get_instructions(code) if each.opname != "RESUME"]
    match instructions:
        case [("LOAD_FAST", name), ("LOAD_CONST", field), ("BINARY_SUBSCR", _), ("RETURN_VALUE", _)] if name == record:
            return itemgetter(field)
        case [("LOAD_FAST", name), ("LOAD_ATTR", str(attribute)), ("RETURN_VALUE", _)] if name == record:
            return attrgetter(attribute)
    return None


def resolve_partitioner(partitioner: Any) -> Callable[[Any, int], int]:
    call: Callable[[Any, int], int] = method_of(partitioner, Partitioner, "partition")
    return call
