"""How a job is to be run: everything about it that is not its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from firesteel.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration


@dataclass(frozen=True)
class CheckpointSettings:
    """When and where checkpoints are taken. No interval: none but the final one, which commits the sinks."""

    interval_ms: int | None = None
    timeout_ms: int = 600_000
    directory: str | None = None
    retained: int = 1
    mode: str = "EXACTLY_ONCE"  # or AT_LEAST_ONCE
    min_pause_ms: int = 0
    tolerable_failures: int | None = None  # in a row; None: any number
    delete_on_cancellation: bool = False
    max_state_size: int | None = None  # checkpoints are in the driver's memory, if there is no directory
    savepoint_directory: str | None = None  # where savepoints go that are given none

    @property
    def enabled(self) -> bool:
        return self.interval_ms is not None


@dataclass(frozen=True)
class StartSettings:
    """From which checkpoint a job starts. Its own newest one, if there is one, unless something else is said here."""

    restore_from: str | None = None  # a checkpoint's or savepoint's directory or _metadata file, of any job
    allow_non_restored_state: bool = False  # state of operators that the program does not have any more is given up
    must_resume: bool = False  # the job has to have a checkpoint: it is an error if it would start from nothing
    claim: bool = False  # the job owns the savepoint that it starts from
    take_over: bool = False  # even if another driver runs the job, which then has to end


@dataclass(frozen=True)
class RocksDBSettings:
    """How a slot keeps its state in RocksDB. It can be JSON."""

    local_directories: Sequence[str] = ()  # on the slots' machines, by turns; none: where the slot keeps its socket
    object_cache_size: int = 128 << 20  # the three together are what a slot's state takes of its memory, about
    block_cache_size: int = 64 << 20
    write_buffer_size: int = 32 << 20
    write_buffers: int = 2
    background_jobs: int = 2
    open_files: int = -1  # any number
    block_size: int = 4 << 10
    bloom_filter_bits: int = 10  # for each key; 0: none
    compression: Sequence[str] = ("lz4",)  # of each level, the last one for all further levels
    compaction_style: str = "level"
    target_file_size: int = 64 << 20
    level_base_size: int = 256 << 20
    dynamic_levels: bool = True
    transfer_threads: int = 4  # that write a checkpoint's files


@dataclass(frozen=True)
class RestSettings:
    """Where a job can be asked and told things while it runs."""

    enabled: bool = True
    bind_address: str = "127.0.0.1"
    port: tuple[int, ...] = (0,)  # the first one that is free; 0: any
    bind_port: tuple[int, ...] | None = None  # the same, and it counts if both are set, as in Flink
    address: str | None = None  # what others call this machine; None: the address it is bound to
    token: str | None = field(default=None, repr=False)  # None: a random one, which only this user can read

    @property
    def ports(self) -> tuple[int, ...]:
        return self.port if self.bind_port is None else self.bind_port


@dataclass(frozen=True)
class JobSettings:
    """A job's settings, resolved."""

    name: str
    checkpoints: CheckpointSettings = CheckpointSettings()
    restart: RestartStrategyConfiguration = field(default_factory=RestartStrategies.fall_back_restart)
    epoch_target_ms: int = 1000
    heartbeat_timeout_ms: int = 50_000
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)  # what functions see as job parameters
    progress: bool | None = None  # None: when standard error is a terminal
    start: StartSettings = StartSettings()
    rocksdb: RocksDBSettings | None = None  # None: state is in the slots' memory
    rest: RestSettings = RestSettings()
