"""How operator state is divided among subtasks when a checkpoint is restored.

Each rule takes what every old subtask had, in the order of subtasks, and gives what every new one gets; that may be one
object for all, so nobody changes it. Keyed state needs no such rule: it moves with its key groups.

| kind | rule |
| --- | --- |
| list, raw | concatenated, and split evenly into runs: the first subtasks have one more where it does not come out even |
| union | everything to everybody, also when the number of subtasks stays the same |
| broadcast | the first old subtask's copy to everybody: the copies are equal, and if they are not, they are from now on |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, TypeVar

from firesteel.state.files import BROADCAST, UNION

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def split_evenly(parts: Sequence[Sequence[T]], parallelism: int) -> list[list[T]]:
    """For list and raw state. With as many subtasks as before, everybody keeps what they had."""
    if len(parts) == parallelism:
        return [list(part) for part in parts]
    elements = list(chain.from_iterable(parts))
    least, more = divmod(len(elements), parallelism)
    starts = [index * least + min(index, more) for index in range(parallelism + 1)]
    return [elements[start:end] for start, end in pairwise(starts)]


def unite(parts: Sequence[Sequence[T]], parallelism: int) -> list[list[T]]:
    """For union list state."""
    return [list(chain.from_iterable(parts))] * parallelism


def copy_to_all(parts: Sequence[Mapping[K, V]], parallelism: int) -> list[dict[K, V]]:
    """For broadcast state. With as many subtasks as before, everybody keeps what they had."""
    if len(parts) == parallelism:
        return [dict(part) for part in parts]
    return [dict(parts[0]) if parts else {}] * parallelism


def redistribute(kind: str, parts: Sequence[Any], parallelism: int) -> list[Any]:
    """Operator state of that kind."""
    if kind == UNION:
        return unite(parts, parallelism)
    if kind == BROADCAST:
        return copy_to_all(parts, parallelism)
    return split_evenly(parts, parallelism)


def needs_others(kind: str, *, rescaled: bool) -> bool:
    """Whether a subtask needs what others had, so that its own state files are not enough to restore it."""
    return rescaled or kind == UNION
