"""Every setting there is: what configuration files, the environment, `-D` and `env.configure(...)` may name.

docs/configuration.md shows this table; `firesteel config` shows it with the values in effect.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from firesteel.common.option import (
    BOOLEAN,
    COMMA_LIST,
    DURATION,
    INTEGER,
    LIST,
    MAP,
    NUMBER,
    PATH,
    SIZE,
    TEXT,
    Kind,
    Option,
    choice,
)
from firesteel.common.ports import parse_ports
from firesteel.datastream.checkpoint_config import CheckpointConfig, CheckpointStorageKind
from firesteel.datastream.checkpointing_mode import CheckpointingMode
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.datastream.rocksdb_options import rocksdb_options
from firesteel.datastream.state_backend import state_backend_named
from firesteel.errors import ConfigurationError

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment

    Env = StreamExecutionEnvironment
    EnvironmentOption = Option[StreamExecutionEnvironment]

PARAMETERS = "pipeline.global-job-parameters"
STRATEGY = "restart-strategy.type"


class _ClaimMode(enum.Enum):
    NO_CLAIM = 0
    CLAIM = 1
    LEGACY = 2


class _Strategy(enum.Enum):
    NONE = 0
    FIXED_DELAY = 1
    FAILURE_RATE = 2
    EXPONENTIAL_DELAY = 3


def _strategy(text: str) -> str:
    """As Flink spells them: `off` and `disable` mean none."""
    name = {"off": "none", "disable": "none"}.get(text, text)
    dashed = {"fixeddelay": "fixed-delay", "failurerate": "failure-rate", "exponentialdelay": "exponential-delay"}
    name = dashed.get(name, name)
    known = [member.name.lower().replace("_", "-") for member in _Strategy]
    if name not in known:
        raise ValueError(f"known are {', '.join(known)}")
    return name


def _claim_mode(env: Env, mode: _ClaimMode) -> None:
    if mode is _ClaimMode.LEGACY:
        raise ConfigurationError(
            "execution.state-recovery.claim-mode cannot be LEGACY: there the job depends on a savepoint that is not its own "
            "and that anybody may delete. NO_CLAIM takes a copy and leaves the original alone; CLAIM makes the job its owner"
        )
    env.start = replace(env.start, claim=mode is _ClaimMode.CLAIM)


def _start(**changes: Callable[[Any], Any]) -> Callable[[Env, Any], object]:
    def apply(env: Env, value: Any) -> None:
        env.start = replace(env.start, **{name: change(value) for name, change in changes.items()})

    return apply


def _rest(**changes: Callable[[Any], Any]) -> Callable[[Env, Any], object]:
    def apply(env: Env, value: Any) -> None:
        env.rest = replace(env.rest, **{name: change(value) for name, change in changes.items()})

    return apply


def _checkpoints(setter: Callable[[CheckpointConfig, Any], object]) -> Callable[[Env, Any], object]:
    return lambda env, value: setter(env.get_checkpoint_config(), value)


def _nothing(env: Env, value: Any) -> None:
    """Accepted without effect, or looked at together with others."""


def _python_files(env: Env, paths: list[str]) -> None:
    for path in paths:
        env.add_python_file(path)


def _same(value: Any) -> Any:
    return value


def _pipeline() -> list[EnvironmentOption]:
    return [
        Option("parallelism.default", INTEGER, "", "How many subtasks an operator has. By itself the number of cores.",
               lambda env, v: env.set_parallelism(v)),
        Option("pipeline.name", TEXT, "Firesteel Streaming Job", "The name of a job whose execute() gives none. Name and "
               "checkpoint directory tie a job to its checkpoints.", lambda env, v: env.set_default_job_name(v)),
        Option("pipeline.max-parallelism", INTEGER, "", "The number of key groups, fixed for the life of a job's state. By "
               "itself 128, or more with a high parallelism.", lambda env, v: env.set_max_parallelism(v)),
        Option(PARAMETERS, MAP, "", "What functions find in their runtime context. In YAML also as a mapping; each "
               "parameter can also be set alone, as `pipeline.global-job-parameters.<name>`.",
               lambda env, v: env.get_config().set_global_job_parameters(v)),
        Option("pipeline.operator-chaining.enabled", BOOLEAN, "true", "Whether operators hand records on by a function "
               "call where they can.", lambda env, v: None if v else env.disable_operator_chaining(),
               ("pipeline.operator-chaining",)),
        Option("pipeline.auto-watermark-interval", DURATION, "200 ms", "Accepted, without effect: watermarks fall after "
               "numbers of records.", lambda env, v: env.get_config().set_auto_watermark_interval(v)),
        Option("pipeline.auto-generate-uids", BOOLEAN, "true", "Whether operators without a uid get one; if not, they are "
               "refused.", lambda env, v: None if v else env.get_config().disable_auto_generated_uids()),
        Option("pipeline.object-reuse", BOOLEAN, "false", "Whether operators that read the same "
               "records share the objects. If not, each gets its own and may change them.",
               lambda env, v: env.get_config().enable_object_reuse() if v else None),
        Option("pipeline.jars", LIST, "", "Accepted, without effect: connectors are Python here.",
               lambda env, v: env.add_jars(*v)),
        Option("pipeline.classpaths", LIST, "", "Accepted, without effect.", lambda env, v: env.add_classpaths(*v)),
        Option("python.files", COMMA_LIST, "", "Python files, packages' directories and archives to put on `sys.path`.",
               _python_files),
        Option("execution.runtime-mode", choice(RuntimeExecutionMode), "STREAMING", "Accepted: all modes run alike.",
               lambda env, v: env.set_runtime_mode(v)),
        Option("execution.buffer-timeout.enabled", BOOLEAN, "true", "Accepted, without effect.",
               lambda env, v: None if v else env.set_buffer_timeout(-1)),
        Option("execution.buffer-timeout.interval", DURATION, "100 ms", "Accepted, without effect: records leave with "
               "their epoch.", lambda env, v: env.set_buffer_timeout(v), ("execution.buffer-timeout",)),
        Option("firesteel.epoch.target-duration", DURATION, "1 s", "How long an epoch should take: the latency of output "
               "that is not transactional.", lambda env, v: env.set_epoch_target_duration(v)),
        Option("firesteel.progress", BOOLEAN, "", "Whether a line of progress is shown. By itself if standard error is a "
               "terminal.", lambda env, v: env.show_progress(v)),
        Option("firesteel.window.pre-combine", BOOLEAN, "true", "Whether records of a window are combined before they are sent "
               "to the subtask of their key, where that gives the same results.",
               lambda env, v: env.get_config().set_window_pre_combining(v)),
        Option("heartbeat.timeout", DURATION, "50 s", "How long a slot may be silent before it counts as lost, and the job "
               "rolls back.", lambda env, v: env.set_heartbeat_timeout(v)),
        Option("spark.master", TEXT, "", "Where the embedded Spark runs. By itself `local` with a core for each subtask. All "
               "other `spark.*` settings are passed on to it as they are.",
               lambda env, v: env.set_spark_option("spark.master", v)),
    ]  # fmt: skip


def _checkpointing() -> list[EnvironmentOption]:
    prefix = "execution.checkpointing."
    return [
        Option(prefix + "interval", DURATION, "", "From one checkpoint to the next. None: no checkpoints.",
               _checkpoints(lambda c, v: c.set_checkpoint_interval(v))),
        Option(prefix + "dir", PATH, "", "Where checkpoints are kept: a path, or a URI of a file system that pyarrow knows "
               "(`s3://`, `gs://`, `abfs://`, `hdfs://`). None: a directory that lasts as long as the job.",
               _checkpoints(lambda c, v: c.set_checkpoint_storage_dir(v)),
               ("state.checkpoints.dir",)),
        Option(prefix + "num-retained", INTEGER, "1", "How many completed checkpoints are kept.",
               _checkpoints(lambda c, v: c.set_max_retained_checkpoints(v)), ("state.checkpoints.num-retained",)),
        Option(prefix + "mode", choice(CheckpointingMode), "EXACTLY_ONCE", "The guarantee for state.",
               _checkpoints(lambda c, v: c.set_checkpointing_mode(v))),
        Option(prefix + "timeout", DURATION, "10 min", "A checkpoint that takes longer is dropped, and the job goes on.",
               _checkpoints(lambda c, v: c.set_checkpoint_timeout(v))),
        Option(prefix + "min-pause", DURATION, "0 s", "From the end of one checkpoint to the start of the next, at least.",
               _checkpoints(lambda c, v: c.set_min_pause_between_checkpoints(v))),
        Option(prefix + "tolerable-failed-checkpoints", INTEGER, "", "How many in a row may fail before the job does. None: "
               "any number.", _checkpoints(lambda c, v: c.set_tolerable_checkpoint_failure_number(v))),
        Option(prefix + "externalized-checkpoint-retention", choice(ExternalizedCheckpointRetention),
               "NO_EXTERNALIZED_CHECKPOINTS", "Whether a cancelled job's checkpoints are deleted; only "
               "DELETE_ON_CANCELLATION does that.", _checkpoints(lambda c, v: c.set_externalized_checkpoint_retention(v))),
        Option(prefix + "savepoint-dir", PATH, "", "Where savepoints go that are given no directory: a path or URI.",
               _checkpoints(lambda c, v: c.set_savepoint_dir(v)), ("state.savepoints.dir",)),
        Option(prefix + "storage", choice(CheckpointStorageKind), "", "`filesystem`: in the directory, which has to be set. "
               "`jobmanager`: in the driver's memory, up to 5 MB for each slot, if there is no directory. By itself: in "
               "files.", _checkpoints(lambda c, v: c._choose_storage(v)), ("state.checkpoint-storage",)),
        Option(prefix + "incremental", BOOLEAN, "true", "Accepted, without effect: they always are.", _nothing,
               ("state.backend.incremental",)),
        Option(prefix + "max-concurrent-checkpoints", INTEGER, "1", "Accepted, without effect: it is always one.",
               _checkpoints(lambda c, v: c.set_max_concurrent_checkpoints(v))),
        Option(prefix + "unaligned.enabled", BOOLEAN, "false", "Accepted, without effect: nothing is in flight at a barrier.",
               _checkpoints(lambda c, v: c.enable_unaligned_checkpoints(v)), (prefix + "unaligned",)),
        Option(prefix + "unaligned.forced", BOOLEAN, "false", "Accepted, without effect.",
               _checkpoints(lambda c, v: c.set_force_unaligned_checkpoints(v))),
        Option(prefix + "aligned-checkpoint-timeout", DURATION, "0 ms", "Accepted, without effect.",
               _checkpoints(lambda c, v: c.set_aligned_checkpoint_timeout(v))),
        Option(prefix + "data-inline-threshold", SIZE, "20 kb", "Accepted, without effect: all state is in files.", _nothing,
               ("state.storage.fs.memory-threshold",)),
        Option("state.backend.type", Kind("hashmap or rocksdb", state_backend_named), "hashmap", "Where working state "
               "lives: in the slots' memory, or in RocksDB on their disks.",
               lambda env, v: env.set_state_backend(v), ("state.backend",)),
    ]  # fmt: skip


def _starting() -> list[EnvironmentOption]:
    prefix, before = "execution.state-recovery.", "execution.savepoint."
    return [
        Option(prefix + "path", PATH, "", "The checkpoint or savepoint to start from, of this or any other job: its "
               "directory or its `_metadata` file (`run -s`).", _start(restore_from=_same), (before + "path",)),
        Option(prefix + "ignore-unclaimed-state", BOOLEAN, "false", "Give up state of operators that the program does not "
               "have any more (`run -n`).", _start(allow_non_restored_state=_same), (before + "ignore-unclaimed-state",)),
        Option(prefix + "claim-mode", choice(_ClaimMode), "NO_CLAIM", "Who owns the savepoint that the job starts from. "
               "NO_CLAIM: the user; the job takes a copy. CLAIM: the job, which deletes it when newer checkpoints are there, "
               "and takes the place of the job that made it. LEGACY is refused.",
               _claim_mode, ("execution.savepoint-restore-mode",)),
        Option("firesteel.resume", BOOLEAN, "false", "Refuse to start without a checkpoint of the job to go on from "
               "(`run --resume`).", _start(must_resume=_same)),
        Option("firesteel.take-over", BOOLEAN, "false", "Start even if another driver runs the job, which then has to end "
               "(`run --take-over`). Otherwise a second driver is refused.", _start(take_over=_same)),
    ]  # fmt: skip


def _operating() -> list[EnvironmentOption]:
    ports = Kind("port or range", parse_ports)
    return [
        Option("rest.enabled", BOOLEAN, "true", "Whether the job can be reached while it runs, by commands such as `firesteel "
               "cancel` and over HTTP (docs/operating.md).", _rest(enabled=_same)),
        Option("rest.port", ports, "0", "The port of its server: the first free one of a range such as `8081-8090`; 0 is any. "
               "None of them is free: the job does not start.", _rest(port=_same)),
        Option("rest.bind-port", ports, "", "The same. If both are set, this one counts.", _rest(bind_port=_same)),
        Option("rest.bind-address", TEXT, "127.0.0.1", "The address that the server listens on. Others than the machine's own "
               "loopback need a `rest.token`.", _rest(bind_address=_same)),
        Option("rest.address", TEXT, "", "What other machines call this one. By itself the address that is listened on.",
               _rest(address=_same)),
        Option("rest.token", TEXT, "", "Who knows it may control the job. By itself a random one that only the user who runs "
               "the job can read. Also `FIRESTEEL_TOKEN`.", _rest(token=_same)),
    ]  # fmt: skip


def _restarting() -> list[EnvironmentOption]:
    def option(name: str, kind: Kind, default: str, description: str) -> EnvironmentOption:
        return Option(f"restart-strategy.{name}", kind, default, description, _nothing)

    names = " or ".join(member.name.lower().replace("_", "-") for member in _Strategy)
    return [
        Option(STRATEGY, Kind(names, _strategy), "", "What a failed job does. By itself, with checkpoints: start again "
               "after a second, without end; without: nothing.", _nothing, ("restart-strategy",)),
        option("fixed-delay.attempts", INTEGER, "1", "How often."),
        option("fixed-delay.delay", DURATION, "1 s", "After how long."),
        option("failure-rate.max-failures-per-interval", INTEGER, "1", "How often in an interval."),
        option("failure-rate.failure-rate-interval", DURATION, "1 min", "That interval."),
        option("failure-rate.delay", DURATION, "1 s", "After how long."),
        option("exponential-delay.initial-backoff", DURATION, "1 s", "After how long, the first time."),
        option("exponential-delay.max-backoff", DURATION, "1 min", "After how long, at most."),
        option("exponential-delay.backoff-multiplier", NUMBER, "1.5", "How many times longer, each time."),
        option("exponential-delay.reset-backoff-threshold", DURATION, "1 h", "After so long without a failure it counts as "
               "the first."),
        option("exponential-delay.jitter-factor", NUMBER, "0.1", "By which part of it a pause varies, at random."),
    ]  # fmt: skip


def _refused() -> list[EnvironmentOption]:
    return [
        Option("python.executable", TEXT, "", "Refused: slots run with the Python of the program.",
               lambda env, v: env.set_python_executable(v), ("python.client.executable",), flinks=True),
        Option("python.requirements", TEXT, "", "Refused: install packages where the program runs.",
               lambda env, v: env.set_python_requirements(v), flinks=True),
        Option("python.archives", TEXT, "", "Refused: unpack archives where every machine can reach them.",
               lambda env, v: env.add_python_archive(v), flinks=True),
    ]  # fmt: skip


SECTIONS: dict[str, list[EnvironmentOption]] = {
    "The job": _pipeline(),
    "Checkpoints and state": _checkpointing(),
    "The RocksDB backend": rocksdb_options(),
    "Where to start": _starting(),
    "Restarts": _restarting(),
    "Watching and controlling a job": _operating(),
    "Of Flink's own processes": _refused(),
}
OPTIONS: dict[str, EnvironmentOption] = {option.key: option for section in SECTIONS.values() for option in section}
OLDER: dict[str, str] = {old: option.key for option in OPTIONS.values() for old in option.older}
"""Names that settings had in Flink before, and what they are called now."""

WITHOUT_EFFECT = (
    "jobmanager.",
    "taskmanager.",
    "rest.",
    "web.",
    "classloader.",
    "python.fn-execution.",
    "python.execution-mode",
    "python.metric.enabled",
    "python.profile.enabled",
    "python.operator-chaining.enabled",
    "python.map-state.",
    "python.state.cache-size",
    "pipeline.time-characteristic",
    "pipeline.closure-cleaner-level",
    "pipeline.generic-types",
    "pipeline.force-",
    "state.backend.rocksdb.",
    "state.backend.latency-track.",
    "heartbeat.",
    "high-availability",
    "metrics.",
    "security.",
    "env.",
    "kubernetes.",
    "yarn.",
    "execution.target",
    "execution.attached",
    "$internal.",
)
"""How keys begin that are about Flink's own processes, or about Java."""
