from __future__ import annotations

import pytest

from firesteel.common import Duration
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.checkpoint_config import CheckpointConfig, CheckpointingMode
from firesteel.datastream.checkpoint_storage import FileSystemCheckpointStorage, JobManagerCheckpointStorage
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import ConfigurationError


@pytest.fixture
def config() -> CheckpointConfig:
    return StreamExecutionEnvironment().get_checkpoint_config()


def test_defaults_are_flinks_but_failed_checkpoints_are_tolerable(config):
    assert not config.is_checkpointing_enabled()
    assert config.get_checkpoint_interval() == -1
    assert config.get_checkpoint_timeout() == 600_000
    assert config.get_min_pause_between_checkpoints() == 0
    assert config.get_max_concurrent_checkpoints() == 1
    assert config.get_tolerable_checkpoint_failure_number() > 1_000_000
    assert not config.is_fail_on_checkpointing_errors()
    assert not config.is_externalized_checkpoints_enabled()
    assert not config.is_unaligned_checkpoints_enabled()
    assert not config.is_force_unaligned_checkpoints()
    assert config.get_alignment_timeout() == Duration.of_millis(0)


def test_every_setting_can_be_read_back_and_chained(config):
    retain = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    changed = (
        config.set_checkpoint_interval(1000)
        .set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
        .set_checkpoint_timeout(5000)
        .set_min_pause_between_checkpoints(10)
        .set_max_concurrent_checkpoints(2)
        .set_tolerable_checkpoint_failure_number(3)
        .set_externalized_checkpoint_retention(retain)
        .set_max_retained_checkpoints(20)
        .enable_unaligned_checkpoints()
        .set_force_unaligned_checkpoints()
        .set_aligned_checkpoint_timeout(Duration.of_seconds(1))
    )
    assert changed is config
    assert config.is_checkpointing_enabled()
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert config.get_min_pause_between_checkpoints() == 10
    assert config.get_max_concurrent_checkpoints() == 2
    assert config.get_tolerable_checkpoint_failure_number() == 3
    assert config.get_externalized_checkpoint_retention() is retain
    assert config.is_externalized_checkpoints_enabled()
    assert config.is_unaligned_checkpoints_enabled()
    assert config.is_force_unaligned_checkpoints()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(1)
    assert not config.disable_unaligned_checkpoints().is_unaligned_checkpoints_enabled()
    settings = config.settings()
    assert (settings.interval_ms, settings.timeout_ms, settings.retained) == (1000, 5000, 20)


def test_failing_on_errors_is_tolerating_none(config):
    assert not config.set_fail_on_checkpointing_errors(False).is_fail_on_checkpointing_errors()
    assert config.get_tolerable_checkpoint_failure_number() > 1_000_000
    assert config.set_fail_on_checkpointing_errors(True).get_tolerable_checkpoint_failure_number() == 0


def test_the_storage_is_a_directory_or_lasts_as_long_as_the_job(config):
    assert config.get_checkpoint_storage() is None
    config.set_checkpoint_storage(FileSystemCheckpointStorage("file:///tmp/c"))
    assert config.get_checkpoint_storage_dir() == "file:///tmp/c"
    storage = config.get_checkpoint_storage()
    assert isinstance(storage, FileSystemCheckpointStorage)
    assert storage.get_checkpoint_path() == "file:///tmp/c"
    assert (config.settings().directory, config.settings().max_state_size) == ("file:///tmp/c", None)
    config.set_checkpoint_storage(JobManagerCheckpointStorage())
    assert (config.settings().directory, config.settings().max_state_size) == (None, 5 * 1024 * 1024)
    config.set_checkpoint_storage(JobManagerCheckpointStorage(max_state_size=1000))
    storage = config.get_checkpoint_storage()
    assert isinstance(storage, JobManagerCheckpointStorage) and storage.get_max_state_size() == 1000
    config.set_checkpoint_storage(JobManagerCheckpointStorage("s3://bucket/c"))
    assert config.get_checkpoint_storage_dir() == "s3://bucket/c"


@pytest.mark.parametrize(
    "create",
    [
        lambda: JobManagerCheckpointStorage(max_state_size=0),
        lambda: JobManagerCheckpointStorage(max_state_size="5 mb"),
        lambda: FileSystemCheckpointStorage("/tmp/c", 1024 * 1024 + 1),
        lambda: FileSystemCheckpointStorage("/tmp/c", -2),
    ],
)
def test_bad_sizes_of_storages_are_refused(create):
    with pytest.raises(ConfigurationError, match="number of bytes"):
        create()


@pytest.mark.parametrize(
    ("setter", "value", "words"),
    [
        ("set_checkpoint_interval", 0, "interval"),
        ("set_checkpoint_timeout", 9, "timeout"),
        ("set_min_pause_between_checkpoints", -1, "pause"),
        ("set_max_concurrent_checkpoints", 0, "concurrent"),
        ("set_tolerable_checkpoint_failure_number", -1, "tolerable"),
        ("set_max_retained_checkpoints", 0, "retained"),
        ("set_checkpointing_mode", "EXACTLY_ONCE", "CheckpointingMode"),
        ("set_externalized_checkpoint_retention", True, "ExternalizedCheckpointRetention"),
        ("set_checkpoint_storage", "/tmp/c", "set_checkpoint_storage_dir"),
        ("set_checkpoint_storage_dir", "", "is a path or URI"),
        ("set_checkpoint_storage_dir", None, "is a path or URI"),
    ],
)
def test_bad_values_are_refused(config, setter, value, words):
    with pytest.raises(ConfigurationError, match=words):
        getattr(config, setter)(value)


def test_the_environment_has_the_same_settings():
    env = StreamExecutionEnvironment().enable_checkpointing(500, CheckpointingMode.AT_LEAST_ONCE)
    config = env.get_checkpoint_config()
    assert env.get_checkpoint_interval() == config.get_checkpoint_interval() == 500
    assert env.get_checkpointing_mode() is env.get_checkpointing_consistency_mode() is CheckpointingMode.AT_LEAST_ONCE
    config.enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    assert env.is_unaligned_checkpoints_enabled()
    assert env.is_force_unaligned_checkpoints()
    env.enable_checkpointing(700)  # says nothing about the mode, so it stays
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert env.set_default_savepoint_directory("/tmp/s").get_default_savepoint_directory() == "/tmp/s"
