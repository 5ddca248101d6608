"""Settings by key, as they stand in a configuration file, for a whole environment.

An unknown key is an error: a misspelt setting must not be a setting that silently does nothing. Keys of Flink that mean
nothing here are known by name, and say so in the log.
"""

from __future__ import annotations

import enum
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.common.config_options import to_bool, to_float, to_int
from firesteel.common.configuration import Configuration
from firesteel.common.durations import parse_duration_ms
from firesteel.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.state_backend import state_backend_named
from firesteel.errors import ConfigurationError

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment

log = logging.getLogger("firesteel")

T = TypeVar("T")
E = TypeVar("E", bound=enum.Enum)


def apply(environment: StreamExecutionEnvironment, configuration: Configuration) -> None:
    """Take every setting of the configuration.

    :raises ConfigurationError: a key is unknown, or a value cannot be what is asked for.
    """
    options = configuration.to_dict()
    for key, value in options.items():
        if key.startswith("spark.") or key in _OPTIONS:
            _taken(key, value, environment)
        elif key.startswith(_WITHOUT_EFFECT):
            log.warning("setting %s has no effect: it is about Flink's own processes", key)
        elif not environment.get_checkpoint_config().configure(key, value) and not key.startswith("restart-strategy"):
            raise ConfigurationError(f"unknown setting {key!r} (value {value!r})")
    strategy = restart_strategy(options)
    if strategy is not None:
        environment.set_restart_strategy(strategy)


def _taken(key: str, value: str, environment: StreamExecutionEnvironment) -> None:
    if key.startswith("spark."):
        environment.set_spark_option(key, value)
        return
    try:
        _OPTIONS[key](environment, value)
    except ValueError as error:
        raise ConfigurationError(f"{key} cannot be {value!r}: {error}") from None


def enum_option(kind: type[E], value: str) -> E:
    """The member of that name, however it is written: `exactly-once` is EXACTLY_ONCE."""
    try:
        return kind[value.upper().replace("-", "_")]
    except KeyError:
        raise ValueError(f"known are {', '.join(member.name for member in kind)}") from None


def _parameters(environment: StreamExecutionEnvironment, value: str) -> None:
    """`key:value,key:value`; a value may be in single quotes to hold a comma."""
    pairs: dict[str, str] = {}
    for part in _split_outside_quotes(value):
        key, colon, text = part.partition(":")
        if not colon:
            raise ValueError(f"{part!r} is not of the form key:value")
        pairs[key.strip().strip("'")] = text.strip().strip("'")
    environment.get_config().set_global_job_parameters(pairs)


def _split_outside_quotes(value: str) -> list[str]:
    parts, quoted = [""], False
    for character in value:
        quoted ^= character == "'"
        if character == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def _python_files(environment: StreamExecutionEnvironment, value: str) -> None:
    for path in value.split(","):
        environment.add_python_file(path.strip())


_OPTIONS: dict[str, Callable[[StreamExecutionEnvironment, str], Any]] = {
    "parallelism.default": lambda env, v: env.set_parallelism(to_int(v)),
    "pipeline.max-parallelism": lambda env, v: env.set_max_parallelism(to_int(v)),
    "pipeline.name": lambda env, v: env.set_default_job_name(v),
    "pipeline.operator-chaining": lambda env, v: None if to_bool(v) else env.disable_operator_chaining(),
    "pipeline.operator-chaining.enabled": lambda env, v: None if to_bool(v) else env.disable_operator_chaining(),
    "pipeline.auto-watermark-interval": lambda env, v: env.get_config().set_auto_watermark_interval(v),
    "pipeline.global-job-parameters": _parameters,
    "pipeline.object-reuse": lambda env, v: env.get_config().enable_object_reuse() if to_bool(v) else None,
    "pipeline.auto-generate-uids": lambda env, v: (
        None if to_bool(v) else env.get_config().disable_auto_generated_uids()
    ),
    "pipeline.jars": lambda env, v: env.add_jars(*v.split(";")),
    "pipeline.classpaths": lambda env, v: env.add_classpaths(*v.split(";")),
    "execution.runtime-mode": lambda env, v: env.set_runtime_mode(enum_option(RuntimeExecutionMode, v)),
    "execution.buffer-timeout": lambda env, v: env.set_buffer_timeout(parse_duration_ms(v)),
    "execution.buffer-timeout.interval": lambda env, v: env.set_buffer_timeout(parse_duration_ms(v)),
    "execution.buffer-timeout.enabled": lambda env, v: None if to_bool(v) else env.set_buffer_timeout(-1),
    "state.backend": lambda env, v: env.set_state_backend(state_backend_named(v)),
    "state.backend.type": lambda env, v: env.set_state_backend(state_backend_named(v)),
    "python.files": _python_files,
    "python.executable": lambda env, v: env.set_python_executable(v),
    "python.client.executable": lambda env, v: env.set_python_executable(v),
    "python.requirements": lambda env, v: env.set_python_requirements(v),
    "python.archives": lambda env, v: env.add_python_archive(v),
    "heartbeat.timeout": lambda env, v: env.set_heartbeat_timeout(parse_duration_ms(v)),
    "firesteel.epoch.target-duration": lambda env, v: env.set_epoch_target_duration(parse_duration_ms(v)),
    "firesteel.progress": lambda env, v: env.show_progress(to_bool(v)),
}

_WITHOUT_EFFECT = (
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
)
"""How keys begin that are about Flink's own processes, or about Java."""


def restart_strategy(options: Mapping[str, str]) -> RestartStrategyConfiguration | None:
    """What `restart-strategy.type` and its options say; None when it is not set."""
    kind = options.get("restart-strategy.type", options.get("restart-strategy"))
    if kind is None:
        return None

    def option(name: str, convert: Callable[[str], T], default: str) -> T:
        key = f"restart-strategy.{name}"
        value = options.get(key, default)
        try:
            return convert(value)
        except ValueError as error:
            raise ConfigurationError(f"{key} cannot be {value!r}: {error}") from None

    if kind in ("none", "off", "disable"):
        return RestartStrategies.no_restart()
    if kind in ("fixed-delay", "fixeddelay"):
        return RestartStrategies.fixed_delay_restart(
            option("fixed-delay.attempts", to_int, "1"), option("fixed-delay.delay", parse_duration_ms, "1 s")
        )
    if kind in ("failure-rate", "failurerate"):
        return RestartStrategies.failure_rate_restart(
            option("failure-rate.max-failures-per-interval", to_int, "1"),
            option("failure-rate.failure-rate-interval", parse_duration_ms, "1 min"),
            option("failure-rate.delay", parse_duration_ms, "1 s"),
        )
    if kind in ("exponential-delay", "exponentialdelay"):
        return RestartStrategies.exponential_delay_restart(
            option("exponential-delay.initial-backoff", parse_duration_ms, "1 s"),
            option("exponential-delay.max-backoff", parse_duration_ms, "1 min"),
            option("exponential-delay.backoff-multiplier", to_float, "1.5"),
            option("exponential-delay.reset-backoff-threshold", parse_duration_ms, "1 h"),
            option("exponential-delay.jitter-factor", to_float, "0.1"),
        )
    raise ConfigurationError(
        f"restart-strategy.type is {kind!r}; known are none, fixed-delay, failure-rate and exponential-delay"
    )


def python_path_of(file_path: str) -> str:
    """What has to be on `sys.path` for a Python file, a package's directory or an archive to be found."""
    path = os.path.abspath(file_path.removeprefix("file://"))
    if not os.path.exists(path):
        raise ConfigurationError(f"add_python_file({file_path!r}): there is no such file or directory")
    return os.path.dirname(path) if path.endswith(".py") else path
