from __future__ import annotations

import pytest

from firesteel.common import Configuration, Duration, RestartStrategies
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.checkpoint_config import CheckpointingMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.errors import ConfigurationError, FiresteelError


def with_options(options: dict[str, str]) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment(Configuration.from_dict(options))


def test_the_pipelines_options_are_taken():
    env = with_options(
        {
            "parallelism.default": "3",
            "pipeline.max-parallelism": "64",
            "pipeline.name": "nightly",
            "pipeline.operator-chaining.enabled": "false",
            "pipeline.auto-watermark-interval": "50 ms",
            "pipeline.global-job-parameters": "city:Oslo, 'note':'a, b: c'",
            "pipeline.object-reuse": "true",
            "execution.buffer-timeout.interval": "20 ms",
            "execution.runtime-mode": "automatic",
            "firesteel.epoch.target-duration": "250 ms",
            "firesteel.progress": "false",
            "spark.master": "local[2]",
            "spark.executor.memory": "1g",
        }
    )
    assert (env.get_parallelism(), env.get_max_parallelism(), env.is_chaining_enabled()) == (3, 64, False)
    assert env.get_config().get_auto_watermark_interval() == 50
    assert env.get_config().is_object_reuse_enabled()
    assert env.get_buffer_timeout() == 20
    settings = env.settings("job")
    assert settings.parameters == {"city": "Oslo", "note": "a, b: c"}
    assert (settings.epoch_target_ms, settings.progress) == (250, False)
    assert (settings.master, settings.spark) == ("local[2]", {"spark.executor.memory": "1g"})
    env.from_sequence(1, 2).print()
    assert env.explain().startswith("nightly: ")


def test_the_checkpoints_options_are_taken():
    config = with_options(
        {
            "execution.checkpointing.interval": "3 s",
            "execution.checkpointing.mode": "at-least-once",
            "execution.checkpointing.timeout": "1 min",
            "execution.checkpointing.min-pause": "500 ms",
            "execution.checkpointing.max-concurrent-checkpoints": "2",
            "execution.checkpointing.tolerable-failed-checkpoints": "4",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.checkpointing.unaligned": "true",
            "execution.checkpointing.aligned-checkpoint-timeout": "5 s",
            "execution.checkpointing.storage": "filesystem",
            "state.checkpoints.dir": "/tmp/checkpoints",
            "state.savepoints.dir": "/tmp/savepoints",
            "state.checkpoints.num-retained": "20",
            "state.backend.incremental": "true",
        }
    ).get_checkpoint_config()
    assert config.get_checkpoint_interval() == 3000
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert config.get_checkpoint_timeout() == 60_000
    assert config.get_min_pause_between_checkpoints() == 500
    assert config.get_max_concurrent_checkpoints() == 2
    assert config.get_tolerable_checkpoint_failure_number() == 4
    retain = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    assert config.get_externalized_checkpoint_retention() is retain
    assert config.is_unaligned_checkpoints_enabled()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(5)
    assert (config.get_checkpoint_storage_dir(), config.get_savepoint_dir()) == ("/tmp/checkpoints", "/tmp/savepoints")
    assert config.settings().retained == 20


@pytest.mark.parametrize("first", ["state.backend", "state.checkpoints.dir"])
def test_a_directory_counts_whatever_the_storage_is_called(first):
    options = {
        "state.checkpoints.dir": "/tmp/c",
        "state.backend": "jobmanager",
        "state.checkpoint-storage": "jobmanager",
    }
    ordered = {first: options.pop(first), **options}
    assert with_options(ordered).get_checkpoint_config().get_checkpoint_storage_dir() == "/tmp/c"


@pytest.mark.parametrize(
    ("options", "strategy"),
    [
        ({"restart-strategy": "none"}, RestartStrategies.no_restart()),
        (
            {
                "restart-strategy.type": "fixed-delay",
                "restart-strategy.fixed-delay.attempts": "3",
                "restart-strategy.fixed-delay.delay": "10 s",
            },
            RestartStrategies.fixed_delay_restart(3, 10_000),
        ),
        (
            {"restart-strategy": "failure-rate", "restart-strategy.failure-rate.max-failures-per-interval": "5"},
            RestartStrategies.failure_rate_restart(5, "1 min", "1 s"),
        ),
        ({"restart-strategy": "exponential-delay"}, RestartStrategies.exponential_delay_restart()),
    ],
)
def test_restart_strategies_are_taken(options, strategy):
    assert with_options(options).settings("job").restart == strategy


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parallelism.defualt": "3"}, "unknown setting 'parallelism.defualt'; did you mean 'parallelism.default'"),
        ({"restart-strategy.fixed-delay.atempts": "3"}, "did you mean 'restart-strategy.fixed-delay.attempts'"),
        ({"quux": "3"}, "unknown setting 'quux'. firesteel config lists all"),
        ({"execution.state-recovery.claim-mode": "LEGACY"}, "leaves the original alone"),
        ({"parallelism.default": "many"}, "parallelism.default cannot be 'many'"),
        ({"parallelism.default": "0"}, "at least 1"),
        ({"pipeline.global-job-parameters": "Oslo"}, "not of the form key:value"),
        ({"pipeline.object-reuse": "maybe"}, "neither true nor false"),
        ({"execution.runtime-mode": "slow"}, "known are STREAMING, BATCH, AUTOMATIC"),
        ({"execution.checkpointing.mode": "never"}, "known are EXACTLY_ONCE, AT_LEAST_ONCE"),
        ({"execution.checkpointing.interval": "soon"}, "execution.checkpointing.interval cannot be 'soon'"),
        ({"execution.checkpointing.storage": "attic"}, "known are FILESYSTEM, JOBMANAGER"),
        ({"state.backend.rocksdb.compression.per.level": "ZIP"}, "known are NO_COMPRESSION, SNAPPY_COMPRESSION"),
        ({"state.backend.rocksdb.compaction.style": "FIFO"}, "would delete state"),
        ({"state.backend.rocksdb.memory.fixed-per-slot": "0"}, "more than 0"),
        ({"state.backend.type": "papyrus"}, "known are hashmap"),
        ({"restart-strategy": "hope"}, "known are none, fixed-delay"),
        ({"restart-strategy": "fixed-delay", "restart-strategy.fixed-delay.attempts": "x"}, "attempts cannot be 'x'"),
        ({"python.executable": "/usr/bin/python9"}, "start the program with"),
        ({"python.requirements": "r.txt"}, "pip install"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(options, words):
    with pytest.raises(FiresteelError, match=words):
        with_options(options)


def test_keys_of_flinks_own_processes_are_known_to_do_nothing(caplog):
    with_options({"taskmanager.numberOfTaskSlots": "4", "python.fn-execution.bundle.size": "1000"})
    assert [record.args[0] for record in caplog.records] == [
        "taskmanager.numberOfTaskSlots",
        "python.fn-execution.bundle.size",
    ]


def test_python_files_are_checked():
    with pytest.raises(ConfigurationError, match="no such file"):
        with_options({"python.files": "/nowhere/at/all.py"})


def test_what_was_set_in_code_stays_when_the_configuration_does_not_name_it():
    env = StreamExecutionEnvironment()
    env.set_parallelism(5).set_restart_strategy(RestartStrategies.no_restart())
    env.configure(Configuration.from_dict({"pipeline.name": "x"}))
    assert env.get_parallelism() == 5
    assert env.settings("job").restart == RestartStrategies.no_restart()


def test_the_storage_of_checkpoints_is_files_or_the_drivers_memory():
    chosen = {"execution.checkpointing.interval": "1 s", "execution.checkpointing.storage": "jobmanager"}
    settings = with_options(chosen).settings("job").checkpoints
    assert (settings.directory, settings.max_state_size) == (None, 5 * 1024 * 1024)
    settings = with_options({**chosen, "execution.checkpointing.dir": "s3://bucket/c"}).settings("job").checkpoints
    assert settings.directory == "s3://bucket/c"
    files = with_options({**chosen, "execution.checkpointing.storage": "filesystem"})
    with pytest.raises(
        ConfigurationError, match=r"storage is filesystem, and there is no directory .*checkpointing\.dir"
    ):
        files.settings("job")
    files.get_checkpoint_config().set_checkpoint_storage_dir("/tmp/c")
    assert files.settings("job").checkpoints.directory == "/tmp/c"
