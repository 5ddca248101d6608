"""Settings of the RocksDB backend, under Flink's names, and what they come to for a slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.common.option import BOOLEAN, COMMA_LIST, INTEGER, NUMBER, SIZE, Kind, Option, choice
from firesteel.datastream.state_backend import EmbeddedRocksDBStateBackend, PredefinedOptions
from firesteel.graph.settings import RocksDBSettings

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment

    Env = StreamExecutionEnvironment

_COMPRESSION = {
    "NO_COMPRESSION": "none",
    "SNAPPY_COMPRESSION": "snappy",
    "ZLIB_COMPRESSION": "zlib",
    "BZLIB2_COMPRESSION": "bz2",
    "LZ4_COMPRESSION": "lz4",
    "LZ4HC_COMPRESSION": "lz4hc",
    "ZSTD_COMPRESSION": "zstd",
}
_FAST_DISK: dict[str, Any] = {"background_jobs": 4}
_PREDEFINED: dict[PredefinedOptions, dict[str, Any]] = {
    PredefinedOptions.DEFAULT: {},
    PredefinedOptions.FLASH_SSD_OPTIMIZED: _FAST_DISK,
    PredefinedOptions.SPINNING_DISK_OPTIMIZED: {**_FAST_DISK, "dynamic_levels": True},
    PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM: {
        **_FAST_DISK,
        "dynamic_levels": True,
        "level_base_size": 1 << 30,
        "target_file_size": 256 << 20,
        "write_buffer_size": 64 << 20,
        "write_buffers": 4,
        "block_cache_size": 256 << 20,
        "block_size": 128 << 10,
    },
}


def _compression(text: str) -> tuple[str, ...]:
    names = [name.strip().upper() for name in text.replace(";", ",").split(",") if name.strip()]
    if not names or any(name not in _COMPRESSION for name in names):
        raise ValueError(f"known are {', '.join(_COMPRESSION)}")
    return tuple(_COMPRESSION[name] for name in names)


def _style(text: str) -> str:
    if text.upper() not in ("LEVEL", "UNIVERSAL"):
        raise ValueError("known are LEVEL and UNIVERSAL; FIFO would delete state")
    return text.lower()


def _share(text: str) -> float:
    share = NUMBER.parse(text)
    if not 0 < share < 1:
        raise ValueError("it is between 0 and 1")
    return float(share)


def _positive(kind: Kind) -> Kind:
    def parse(text: str) -> Any:
        value = kind.parse(text)
        if value <= 0:
            raise ValueError("it has to be more than 0")
        return value

    return Kind(kind.name, parse)


def _noted(name: str) -> Callable[[Env, Any], object]:
    return lambda env, value: env.set_rocksdb_option(name, value)


def _without_effect(env: Env, value: Any) -> None:
    """Accepted."""


def rocksdb_options() -> list[Option[Env]]:
    """All of them, each noted in the environment until a job is made of it."""
    prefix = "state.backend.rocksdb."
    return [
        Option(prefix + "localdir", COMMA_LIST, "", "Directories on the slots' machines that state is in while the job runs, "
               "used by turns. By itself the directory for temporary files.", _noted("local_directories")),
        Option(prefix + "memory.fixed-per-slot", _positive(SIZE), "256 mb", "What a slot's state takes of its memory, about: "
               "half of it for hot entries as Python objects, the rest for RocksDB's buffers and cache.",
               _noted("memory")),
        Option(prefix + "memory.write-buffer-ratio", Kind("number", _share), "0.5", "How much of RocksDB's half is for what "
               "is written; the rest is the cache for what is read.", _noted("write_buffer_ratio")),
        Option(prefix + "memory.managed", BOOLEAN, "true", "Accepted, without effect: it always keeps to its memory.",
               _without_effect),
        Option(prefix + "block.cache-size", _positive(SIZE), "", "RocksDB's cache for what is read, instead of its share of "
               "the memory.", _noted("block_cache_size")),
        Option(prefix + "block.blocksize", _positive(SIZE), "4 kb", "How much is read from a file at a time.",
               _noted("block_size")),
        Option(prefix + "writebuffer.size", _positive(SIZE), "", "A buffer for what is written, instead of its share of the "
               "memory.", _noted("write_buffer_size")),
        Option(prefix + "writebuffer.count", _positive(INTEGER), "2", "How many of them.", _noted("write_buffers")),
        Option(prefix + "thread.num", _positive(INTEGER), "2", "Threads that write and merge files in the background.",
               _noted("background_jobs")),
        Option(prefix + "files.open", INTEGER, "-1", "How many files may be open at once; -1: all.", _noted("open_files")),
        Option(prefix + "use-bloom-filter", BOOLEAN, "true", "Whether files say which keys they do not have.",
               _noted("bloom_filter")),
        Option(prefix + "bloom-filter.bits-per-key", NUMBER, "10", "How well they do.", _noted("bloom_filter_bits")),
        Option(prefix + "compression.per.level", Kind("list, divided by ;", _compression), "LZ4_COMPRESSION", "How files are "
               "compressed, from the first level of them to the last: " + ", ".join(_COMPRESSION) + ".",
               _noted("compression")),
        Option(prefix + "compaction.style", Kind("LEVEL or UNIVERSAL", _style), "LEVEL", "How files are merged.",
               _noted("compaction_style")),
        Option(prefix + "compaction.level.use-dynamic-size", BOOLEAN, "true", "Whether the sizes of levels follow the "
               "largest.", _noted("dynamic_levels")),
        Option(prefix + "compaction.level.target-file-size-base", _positive(SIZE), "64 mb", "How large files get.",
               _noted("target_file_size")),
        Option(prefix + "compaction.level.max-size-level-base", _positive(SIZE), "256 mb", "How large the first level "
               "gets.", _noted("level_base_size")),
        Option(prefix + "checkpoint.transfer.thread.num", _positive(INTEGER), "4", "Threads that write a checkpoint's files.",
               _noted("transfer_threads")),
        Option(prefix + "predefined-options", choice(PredefinedOptions), "DEFAULT", "Settings for a kind of disk; others "
               "given here go before them.", _noted("predefined")),
    ]  # fmt: skip


def rocksdb_settings(backend: EmbeddedRocksDBStateBackend, given: Mapping[str, Any]) -> RocksDBSettings:
    """What a backend and the options noted for it come to. What was said in code of the backend itself goes first."""
    options = dict(given)
    predefined = options.pop("predefined", PredefinedOptions.DEFAULT)
    if backend.get_predefined_options() is not PredefinedOptions.DEFAULT:
        predefined = backend.get_predefined_options()
    memory, ratio = options.pop("memory", 256 << 20), options.pop("write_buffer_ratio", 0.5)
    if not options.pop("bloom_filter", True):
        options["bloom_filter_bits"] = 0
    if "bloom_filter_bits" in options:
        options["bloom_filter_bits"] = round(options["bloom_filter_bits"])
    buffers = options.get("write_buffers", _PREDEFINED[predefined].get("write_buffers", 2))
    shared = {
        "object_cache_size": memory // 2,
        "block_cache_size": int(memory // 2 * (1 - ratio)),
        "write_buffer_size": max(1 << 20, int(memory // 2 * ratio) // buffers),
    }
    settings = replace(RocksDBSettings(), **{**shared, **_PREDEFINED[predefined], **options})
    if backend.get_db_storage_paths():
        settings = replace(settings, local_directories=tuple(backend.get_db_storage_paths()))
    if backend.transfer_threads is not None:
        settings = replace(settings, transfer_threads=backend.transfer_threads)
    return replace(settings, local_directories=tuple(map(_path, settings.local_directories)))


def _path(directory: str) -> str:
    return directory.removeprefix("file://")
