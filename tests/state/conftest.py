"""Every store passes the same tests. New stores join the list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from firesteel.graph.keys import KeyGroups
from firesteel.graph.settings import RocksDBSettings
from firesteel.state.hashmap import HashMapStore
from firesteel.state.rocksdb.cache import ObjectCache
from firesteel.state.rocksdb.database import Database
from firesteel.state.rocksdb.store import RocksDBStore
from firesteel.state.store import Store
from tests.support.tiny_cache import TinyCache

Create = Callable[[], Store]

_STORES_IN_A_DATABASE = 200


def _hashmap() -> Store:
    return HashMapStore(KeyGroups(128))


class _RocksDB:
    """Opening a database takes longer than most tests, so stores share one under names of their own."""

    def __init__(self, directory: Path, cache: Callable[[Database], ObjectCache]) -> None:
        self._directory, self._cache = directory, cache
        self._made = 0

    def __call__(self) -> Store:
        if self._made % _STORES_IN_A_DATABASE == 0:
            self._database = Database(str(self._directory / str(self._made)), RocksDBSettings())
        self._made += 1
        return RocksDBStore(KeyGroups(128), self._cache(self._database), f"op {self._made}")


@pytest.fixture(scope="session", params=["hashmap", "rocksdb", "rocksdb, full cache"])
def create(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Create:
    """Makes an empty store."""
    if request.param == "hashmap":
        return _hashmap
    tiny = request.param != "rocksdb"
    return _RocksDB(
        tmp_path_factory.mktemp("rocksdb"), TinyCache if tiny else lambda database: ObjectCache(database, 1 << 24)
    )


@pytest.fixture(scope="session")
def create_with_deltas() -> Create:
    """Makes an empty store whose checkpoints are deltas."""
    return _hashmap
