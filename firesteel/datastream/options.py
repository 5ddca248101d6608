"""Settings by key, as they stand in a configuration file, for a whole environment.

An unknown key is an error: a misspelt setting must not be a setting that silently does nothing. Keys of Flink that mean
nothing here are known by name, and say so in the log.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from firesteel.common.configuration import Configuration
from firesteel.common.option import nearest
from firesteel.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from firesteel.datastream.option_table import OLDER, OPTIONS, PARAMETERS, STRATEGY, WITHOUT_EFFECT
from firesteel.errors import ConfigurationError, FiresteelError

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment

log = logging.getLogger("firesteel")


def apply(
    environment: StreamExecutionEnvironment, configuration: Configuration, sources: Mapping[str, str] | None = None
) -> None:
    """Take every setting of the configuration.

    :param sources: key -> where it was set, for what is wrong with it.
    :raises ConfigurationError: a key is unknown, or a value cannot be what is asked for.
    """
    given: dict[str, str] = {}
    sources = sources or {}
    for key, value in configuration.to_dict().items():
        current = current_name(key)
        with _blaming(sources.get(key)):
            if is_without_effect(current):
                log.warning("setting %s has no effect: it is about Flink's own processes", key)
            else:
                check_known(key)
                _take(environment, current, key, value)
                given[current] = value
    strategy = restart_strategy(given)
    if strategy is not None:
        environment.set_restart_strategy(strategy)


def _take(environment: StreamExecutionEnvironment, current: str, key: str, value: str) -> None:
    option = OPTIONS.get(current)
    if option is not None:
        option.apply(environment, read(current, value, key))
    elif current.startswith(f"{PARAMETERS}."):
        config = environment.get_config()
        parameters = {**config.get_global_job_parameters(), current.removeprefix(f"{PARAMETERS}."): value}
        config.set_global_job_parameters(parameters)
    else:
        environment.set_spark_option(key, value)


def read(current: str, value: str, key: str | None = None) -> Any:
    """The value of a setting's text. `key` is what the user calls the setting."""
    try:
        return OPTIONS[current].read(value)
    except ValueError as error:
        raise ConfigurationError(f"{key or current} cannot be {value!r}: {error}") from None


def current_name(key: str) -> str:
    """What the setting is called now."""
    return OLDER.get(key, key)


def is_known(key: str) -> bool:
    return key in OPTIONS or key in OLDER or key.startswith(("spark.", f"{PARAMETERS}."))


def is_without_effect(key: str) -> bool:
    return not is_known(key) and key.startswith(WITHOUT_EFFECT)


def check_known(key: str) -> None:
    """
    :raises ConfigurationError: there is no such setting.
    """
    if not is_known(key):
        meant = nearest(key, [*OPTIONS, *OLDER])
        raise ConfigurationError(
            f"unknown setting {key!r}"
            + (f"; did you mean {meant!r}?" if meant else ". firesteel config lists all settings")
        )


@contextmanager
def _blaming(source: str | None) -> Iterator[None]:
    """Say where the setting was made, unless that is the line of code that the exception comes from."""
    try:
        yield
    except (FiresteelError, ValueError) as error:
        if source is None:
            raise
        raise ConfigurationError(f"{source}: {error}") from None


def restart_strategy(options: Mapping[str, str]) -> RestartStrategyConfiguration | None:
    """What `restart-strategy.type` and its options say; None when it is not set."""
    kind = options.get(STRATEGY)
    if kind is None:
        without = [key for key in options if key.startswith("restart-strategy.")]
        if without:
            log.warning("setting %s has no effect without %s", without[0], STRATEGY)
        return None

    def option(name: str) -> Any:
        key = f"restart-strategy.{name}"
        return read(key, options.get(key, OPTIONS[key].default))

    strategy = read(STRATEGY, kind)
    if strategy == "fixed-delay":
        return RestartStrategies.fixed_delay_restart(option("fixed-delay.attempts"), option("fixed-delay.delay"))
    if strategy == "failure-rate":
        return RestartStrategies.failure_rate_restart(
            option("failure-rate.max-failures-per-interval"),
            option("failure-rate.failure-rate-interval"),
            option("failure-rate.delay"),
        )
    if strategy == "exponential-delay":
        return RestartStrategies.exponential_delay_restart(
            option("exponential-delay.initial-backoff"),
            option("exponential-delay.max-backoff"),
            option("exponential-delay.backoff-multiplier"),
            option("exponential-delay.reset-backoff-threshold"),
            option("exponential-delay.jitter-factor"),
        )
    return RestartStrategies.no_restart()


def python_path_of(file_path: str) -> str:
    """What has to be on `sys.path` for a Python file, a package's directory or an archive to be found."""
    path = os.path.abspath(file_path.removeprefix("file://"))
    if not os.path.exists(path):
        raise ConfigurationError(f"add_python_file({file_path!r}): there is no such file or directory")
    return os.path.dirname(path) if path.endswith(".py") else path
