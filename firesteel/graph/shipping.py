"""A plan on its way to the slots: user functions pickled one operator at a time, so that a failure can be named."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle  # type: ignore[import-untyped,unused-ignore]

from firesteel.errors import SerializationError
from firesteel.graph.plan import JobPlan, PlannedOperator


def pack_plan(plan: JobPlan) -> bytes:
    """The plan as bytes for `unpack_plan` in another process.

    :raises SerializationError: a function cannot be pickled; names the operator, where it was defined and the culprit.
    """
    return pickle.dumps([_pack(operator) for operator in plan.operators], protocol=pickle.HIGHEST_PROTOCOL)


def unpack_plan(data: bytes) -> JobPlan:
    """The plan again. Only ever given bytes that this job's own driver packed."""
    return JobPlan(tuple(pickle.loads(packed) for packed in pickle.loads(data)))


def pack_main_classes() -> bytes:
    """The classes of the user's main script, for `install_main_classes`.

    Functions of the main script travel by value. Its classes must be found by name as well: instances of them are
    pickled as records and as state, again and again, by processes whose main script is another one.
    """
    main = sys.modules["__main__"]
    classes = {
        name: value
        for name, value in vars(main).items()
        if isinstance(value, type) and value.__module__ == "__main__" and _picklable(value)
    }
    return cloudpickle.dumps(classes, protocol=pickle.HIGHEST_PROTOCOL)  # type: ignore[no-any-return]


def install_main_classes(data: bytes) -> None:
    """Make the driver's main classes those of this process's main module."""
    main = sys.modules["__main__"]
    for name, value in pickle.loads(data).items():
        setattr(main, name, value)


def _pack(operator: PlannedOperator) -> bytes:
    try:
        return cloudpickle.dumps(operator, protocol=pickle.HIGHEST_PROTOCOL)  # type: ignore[no-any-return]
    except Exception as error:
        culprit = next(_culprits(operator.operator, "", 0), None) or f"{type(error).__name__}: {error}"
        raise SerializationError(
            f"{operator} cannot be sent to the slots, because {culprit}. Create such objects in open() instead, which "
            f"runs in the slot, or keep them out of the function's closure"
        ) from error


def _culprits(value: Any, path: str, depth: int) -> Iterator[str]:
    """The innermost things that cannot be pickled, described by how they are reached from the user's function."""
    if depth > 4 or _picklable(value):
        return
    found = False
    for label, part in _parts(value):
        for culprit in _culprits(part, f"{path}{label}", depth + 1):
            found = True
            yield culprit
    if not found:
        yield f"{path.lstrip('.') or 'it'} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be pickled"


def _picklable(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:  # noqa: BLE001  whatever a user's __reduce__ raises means the same here
        return False
    return True


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if getattr(value, "__closure__", None):
        for name, cell in zip(value.__code__.co_freevars, value.__closure__, strict=True):
            yield f".{value.__name__} closing over {name!r}", cell.cell_contents
    if hasattr(value, "__code__"):
        for name in value.__code__.co_names:
            if name in value.__globals__:
                yield f".{value.__name__} using the global {name!r}", value.__globals__[name]
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"[{key!r}]", part
    elif isinstance(value, (list, tuple, set)):
        for index, part in enumerate(value):
            yield f"[{index}]", part
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        for name, part in vars(value).items():
            yield f".{name}", part
