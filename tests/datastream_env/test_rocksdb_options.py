"""What the settings of the RocksDB backend come to, wherever they are made."""

from __future__ import annotations

from typing import Any

from firesteel.common import Configuration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.state_backend import EmbeddedRocksDBStateBackend, PredefinedOptions
from firesteel.graph.settings import RocksDBSettings

KEY = "state.backend.rocksdb."


def settings(options: dict[str, str], backend: EmbeddedRocksDBStateBackend | None = None) -> RocksDBSettings:
    given = {"state.backend": "rocksdb", **options}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(given))
    if backend is not None:
        env.set_state_backend(backend)
    found = env.settings("job").rocksdb
    assert found is not None
    return found


def test_the_defaults_are_those_of_the_slots() -> None:
    assert settings({}) == RocksDBSettings()


def test_the_memory_of_a_slot_is_divided() -> None:
    found = settings({KEY + "memory.fixed-per-slot": "1 gb", KEY + "memory.write-buffer-ratio": "0.25"})
    assert found.object_cache_size == 512 << 20
    assert found.block_cache_size == 384 << 20
    assert found.write_buffer_size * found.write_buffers == 128 << 20


def test_every_option_reaches_the_slots() -> None:
    cases: dict[str, tuple[str, str, Any]] = {
        "localdir": ("/ssd1,file:///ssd2", "local_directories", ("/ssd1", "/ssd2")),
        "block.cache-size": ("10 mb", "block_cache_size", 10 << 20),
        "block.blocksize": ("8 kb", "block_size", 8 << 10),
        "writebuffer.size": ("3 mb", "write_buffer_size", 3 << 20),
        "writebuffer.count": ("5", "write_buffers", 5),
        "thread.num": ("7", "background_jobs", 7),
        "files.open": ("100", "open_files", 100),
        "use-bloom-filter": ("false", "bloom_filter_bits", 0),
        "bloom-filter.bits-per-key": ("12", "bloom_filter_bits", 12),
        "compression.per.level": ("NO_COMPRESSION;zstd_compression", "compression", ("none", "zstd")),
        "compaction.style": ("universal", "compaction_style", "universal"),
        "compaction.level.use-dynamic-size": ("false", "dynamic_levels", False),
        "compaction.level.target-file-size-base": ("1 mb", "target_file_size", 1 << 20),
        "compaction.level.max-size-level-base": ("2 mb", "level_base_size", 2 << 20),
        "checkpoint.transfer.thread.num": ("9", "transfer_threads", 9),
        "predefined-options": ("FLASH_SSD_OPTIMIZED", "background_jobs", 4),
    }
    for key, (text, name, value) in cases.items():
        assert getattr(settings({KEY + key: text}), name) == value, key


def test_what_is_said_of_the_backend_in_code_is_nearer_than_the_configuration() -> None:
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("/fast")
    backend.set_number_of_transfer_threads(2)
    backend.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED_HIGH_MEM)
    found = settings({KEY + "localdir": "/slow", KEY + "block.blocksize": "16 kb"}, backend)
    assert (found.local_directories, found.transfer_threads) == (("/fast",), 2)
    assert (found.block_size, found.target_file_size) == (16 << 10, 256 << 20)


def test_settings_can_travel_to_a_slot_as_json() -> None:
    import json
    from dataclasses import asdict

    found = settings({KEY + "localdir": "/a,/b"})
    there = RocksDBSettings(**json.loads(json.dumps(asdict(found))))
    assert list(there.local_directories) == ["/a", "/b"] and there.block_cache_size == found.block_cache_size
