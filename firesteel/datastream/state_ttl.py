"""How long state is kept after its last use."""

from __future__ import annotations

import enum
from abc import ABC
from typing import cast

from firesteel.common.time import Duration, Time


class TtlUpdateType(enum.Enum):
    """What starts a value's time to live again."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class TtlStateVisibility(enum.Enum):
    """Whether a value that has expired but still exists may be seen."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class TtlClock(enum.Enum):
    """The clock that time to live goes by."""

    ProcessingTime = 0


class TtlCleanupKind(enum.Enum):
    """When expired values are removed, besides when they are found expired on access."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class TtlCleanupStrategy(ABC):  # noqa: B024  the strategies have nothing in common but their use
    """Base of the strategies' settings."""


class EmptyTtlCleanup(TtlCleanupStrategy):
    """A strategy without settings."""


class IncrementalTtlCleanup(TtlCleanupStrategy):
    """Look at a few keys at every access."""

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        self._cleanup_size = cleanup_size
        self._run_cleanup_for_every_record = run_cleanup_for_every_record

    def get_cleanup_size(self) -> int:
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        return self._run_cleanup_for_every_record


class RocksdbTtlCleanup(TtlCleanupStrategy):
    """Drop expired values while RocksDB compacts its files."""

    def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
        self._query_time_after_num_entries = query_time_after_num_entries
        self._periodic_compaction_time = periodic_compaction_time or Duration.of_days(30)

    def get_query_time_after_num_entries(self) -> int:
        return self._query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        return self._periodic_compaction_time


class TtlCleanup:
    """Which strategies are on. Without any chosen, state is cleaned up in the background in its store's own way."""

    Strategies = TtlCleanupKind
    CleanupStrategy = TtlCleanupStrategy
    EmptyCleanupStrategy = EmptyTtlCleanup
    IncrementalCleanupStrategy = IncrementalTtlCleanup
    RocksdbCompactFilterCleanupStrategy = RocksdbTtlCleanup
    EMPTY_STRATEGY = EmptyTtlCleanup()

    def __init__(self, strategies: dict[TtlCleanupKind, TtlCleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        return TtlCleanupKind.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalTtlCleanup | None:
        """The one chosen, else the background's default, else None."""
        default = IncrementalTtlCleanup(5, False) if self._is_cleanup_in_background else None
        chosen = self._strategies.get(TtlCleanupKind.INCREMENTAL_CLEANUP, default)
        return cast("IncrementalTtlCleanup | None", chosen)

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbTtlCleanup | None:
        """The one chosen, else the background's default, else None."""
        default = RocksdbTtlCleanup(1000) if self._is_cleanup_in_background else None
        chosen = self._strategies.get(TtlCleanupKind.ROCKSDB_COMPACTION_FILTER, default)
        return cast("RocksdbTtlCleanup | None", chosen)


class StateTtlConfigBuilder:
    """Builds a `StateTtlConfig`; the defaults are those of Flink."""

    def __init__(self, ttl: Time | Duration) -> None:
        self._ttl = _time(ttl)
        self._update_type = TtlUpdateType.OnCreateAndWrite
        self._state_visibility = TtlStateVisibility.NeverReturnExpired
        self._ttl_time_characteristic = TtlClock.ProcessingTime
        self._is_cleanup_in_background = True
        self._strategies: dict[TtlCleanupKind, TtlCleanupStrategy] = {}

    def set_update_type(self, update_type: TtlUpdateType) -> StateTtlConfigBuilder:
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> StateTtlConfigBuilder:
        return self.set_update_type(TtlUpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> StateTtlConfigBuilder:
        return self.set_update_type(TtlUpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: TtlStateVisibility) -> StateTtlConfigBuilder:
        self._state_visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> StateTtlConfigBuilder:
        return self.set_state_visibility(TtlStateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> StateTtlConfigBuilder:
        return self.set_state_visibility(TtlStateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(self, ttl_time_characteristic: TtlClock) -> StateTtlConfigBuilder:
        self._ttl_time_characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> StateTtlConfigBuilder:
        return self.set_ttl_time_characteristic(TtlClock.ProcessingTime)

    def cleanup_full_snapshot(self) -> StateTtlConfigBuilder:
        """Leave expired values out of full snapshots."""
        self._strategies[TtlCleanupKind.FULL_STATE_SCAN_SNAPSHOT] = TtlCleanup.EMPTY_STRATEGY
        return self

    def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> StateTtlConfigBuilder:
        """Look at `cleanup_size` keys at every access of the state, and at every record if asked to."""
        self._strategies[TtlCleanupKind.INCREMENTAL_CLEANUP] = IncrementalTtlCleanup(
            cleanup_size, run_cleanup_for_every_record
        )
        return self

    def cleanup_in_rocksdb_compact_filter(
        self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
    ) -> StateTtlConfigBuilder:
        """Drop expired values while RocksDB compacts its files."""
        self._strategies[TtlCleanupKind.ROCKSDB_COMPACTION_FILTER] = RocksdbTtlCleanup(
            query_time_after_num_entries, periodic_compaction_time
        )
        return self

    def disable_cleanup_in_background(self) -> StateTtlConfigBuilder:
        """No cleanup but on access and by the strategies chosen."""
        self._is_cleanup_in_background = False
        return self

    def set_ttl(self, ttl: Time | Duration) -> StateTtlConfigBuilder:
        self._ttl = _time(ttl)
        return self

    def build(self) -> StateTtlConfig:
        return StateTtlConfig(
            self._update_type,
            self._state_visibility,
            self._ttl_time_characteristic,
            self._ttl,
            TtlCleanup(self._strategies, self._is_cleanup_in_background),
        )


class StateTtlConfig:
    """How long a state's values live, what renews them and when expired ones are removed."""

    UpdateType = TtlUpdateType
    StateVisibility = TtlStateVisibility
    TtlTimeCharacteristic = TtlClock
    CleanupStrategies = TtlCleanup
    Builder = StateTtlConfigBuilder

    def __init__(
        self,
        update_type: TtlUpdateType,
        state_visibility: TtlStateVisibility,
        ttl_time_characteristic: TtlClock,
        ttl: Time | Duration,
        cleanup_strategies: TtlCleanup,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = _time(ttl)
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Time | Duration) -> StateTtlConfigBuilder:
        """
        :param ttl: how long a value lives; must be positive.
        """
        return StateTtlConfigBuilder(ttl)

    def get_update_type(self) -> TtlUpdateType:
        return self._update_type

    def get_state_visibility(self) -> TtlStateVisibility:
        return self._state_visibility

    def get_ttl(self) -> Time:
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlClock:
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        return self._update_type is not TtlUpdateType.Disabled

    def get_cleanup_strategies(self) -> TtlCleanup:
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig<ttl={self._ttl}, update_type={self._update_type.name}, "
            f"state_visibility={self._state_visibility.name}, "
            f"ttl_time_characteristic={self._ttl_time_characteristic.name}>"
        )


def _time(ttl: Time | Duration) -> Time:
    if isinstance(ttl, Duration):
        ttl = Time.milliseconds(ttl.to_millis())
    if not isinstance(ttl, Time):
        raise TypeError(f"a time to live must be a Time such as Time.hours(1), or a Duration, not {ttl!r}")
    if ttl.to_milliseconds() <= 0:
        raise ValueError(f"a time to live must be at least 1 ms, not {ttl}")
    return ttl
