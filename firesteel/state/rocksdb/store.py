"""A store whose values, lists, maps and later timers are in the slot's database."""

from __future__ import annotations

from firesteel.graph.keys import KeyGroups
from firesteel.state.rocksdb.cache import ObjectCache
from firesteel.state.rocksdb.lists import RocksDBListTable
from firesteel.state.rocksdb.maps import RocksDBMapTable
from firesteel.state.rocksdb.timers import RocksDBTimerTable
from firesteel.state.rocksdb.values import RocksDBValueTable
from firesteel.state.rocksdb.windows import RocksDBWindowRows, RocksDBWindowTable
from firesteel.state.store import ListTable, MapTable, Store, TimerTable, ValueTable, WindowTable


class RocksDBStore(Store):
    """One operator's part of it. What the database has of the operator already is there from the start."""

    def __init__(self, key_groups: KeyGroups, cache: ObjectCache, uid: str) -> None:
        super().__init__(key_groups)
        self._cache, self._uid = cache, uid
        for known_uid, name, kind in cache.database.tables():
            if known_uid == uid:
                self.table(name, kind)

    def _create_values(self, name: str, kind: str) -> ValueTable:
        return RocksDBValueTable(self._cache, self.key_groups, self._uid, name, kind)

    def _create_windows(self, name: str, kind: str) -> WindowTable:
        return RocksDBWindowTable(RocksDBWindowRows(self._cache, self.key_groups, self._uid, name, kind))

    def _create_timers(self, name: str) -> TimerTable:
        return RocksDBTimerTable(self._cache, self.key_groups, self._uid, name)

    def _create_lists(self, name: str, kind: str) -> ListTable:
        return RocksDBListTable(self._cache, self.key_groups, self._uid, name, kind)

    def _create_maps(self, name: str, kind: str) -> MapTable:
        return RocksDBMapTable(self._cache, self.key_groups, self._uid, name, kind)
