"""Every store passes the same tests. New stores join the list."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from firesteel.graph.keys import KeyGroups
from firesteel.state.hashmap import HashMapStore
from firesteel.state.store import Store


def _hashmap() -> Store:
    return HashMapStore(KeyGroups(128))


@pytest.fixture(scope="session", params=[_hashmap], ids=["hashmap"])
def create(request: pytest.FixtureRequest) -> Callable[[], Store]:
    """Makes an empty store."""
    return request.param  # type: ignore[no-any-return]
