"""How far apart two records are, for `DeltaTrigger` and `DeltaEvictor`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from firesteel.errors import GraphError


class DeltaFunction(ABC):
    """The distance between two records."""

    @abstractmethod
    def get_delta(self, old_data_point: Any, new_data_point: Any) -> float:
        """How far the newer one is from the older one."""


def check_delta_function(what: str, given: Any) -> Any:
    """A delta function as the user gave it: an object of that class, or any function of two records."""
    if not isinstance(given, DeltaFunction) and (not callable(given) or isinstance(given, type)):
        raise GraphError(f"{what} takes a DeltaFunction or a function of two records, not {given!r:.200}")
    return given


def delta_of(given: Any) -> Callable[[Any, Any], float]:
    """The function itself, whichever way it was given."""
    call: Callable[[Any, Any], float] = given.get_delta if isinstance(given, DeltaFunction) else given
    return call
