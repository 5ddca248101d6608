"""What is set from outside the program, and by whom. The nearer wins:

defaults < configuration file < environment variables < command line < the program itself
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from firesteel.common.config_files import ConfigFile, Setting, find_config_file
from firesteel.common.configuration import Configuration
from firesteel.common.option import nearest, variable_of
from firesteel.datastream.option_table import OLDER, OPTIONS, PARAMETERS
from firesteel.datastream.options import apply, check_known, current_name, is_known, is_without_effect, read
from firesteel.errors import ConfigurationError

if TYPE_CHECKING:
    from firesteel.datastream.environment import StreamExecutionEnvironment

log = logging.getLogger("firesteel")

Layer = dict[str, Setting]

_OTHER_VARIABLES = ("FIRESTEEL_CONF_DIR", "FIRESTEEL_CRASH", "FIRESTEEL_CRASH_ONCE", "FIRESTEEL_HOME")
_TOKEN = "FIRESTEEL_TOKEN"
_MISSPELT = 0.85  # how alike a variable and a setting's are when the one is a misspelling of the other

_command_line: Layer = {}
_skipped: set[str] = set()  # files of Flink's whose other settings have been mentioned


def hand_over(command_line: Layer) -> None:
    """What `firesteel run` was told: it holds for all environments of this process."""
    global _command_line
    _command_line = dict(command_line)


def settings_in_effect(environ: Mapping[str, str] | None = None, directory: str | None = None) -> Layer:
    """Everything that is set from outside the program, under its current name.

    :raises ConfigurationError: a setting is unknown, or set in two ways at once; it says where.
    """
    environ = os.environ if environ is None else environ
    file = find_config_file(environ, directory or os.getcwd())
    layers = [_of_file(file) if file is not None else {}, _of_environment(environ), _command_line]
    effective: Layer = {}
    for layer in layers:
        effective.update(_current(layer))
    return effective


def configured(
    environment: StreamExecutionEnvironment, configuration: Configuration | None = None
) -> StreamExecutionEnvironment:
    """Give an environment everything that is set from outside the program, and over it the program's own settings.

    :raises ConfigurationError: a setting is unknown or cannot be what it is set to; it says where.
    """
    settings = settings_in_effect()
    own = configuration or Configuration()
    for key in own.key_set():
        settings.pop(current_name(key), None)
    values = Configuration.from_dict({key: setting.value for key, setting in settings.items()})
    apply(environment, values.add_all(own), {key: setting.source for key, setting in settings.items()})
    return environment


def _of_file(file: ConfigFile) -> Layer:
    found = file.settings()
    if not file.flinks:
        return found
    ours = {key: setting for key, setting in found.items() if _means_something(key)}
    skipped = sorted(found.keys() - ours.keys())
    if skipped and file.path not in _skipped:
        _skipped.add(file.path)
        log.info("%s: %d settings mean nothing here: %s", file.path, len(skipped), ", ".join(skipped))
        for key in skipped:
            meant = nearest(key, OPTIONS, _MISSPELT)
            if meant is not None and not is_known(key):
                log.warning("%s: %r is no setting here; did you mean %r?", found[key].source, key, meant)
    return ours


def _means_something(key: str) -> bool:
    option = OPTIONS.get(current_name(key))
    return is_known(key) and not (option is not None and option.flinks)


def _of_environment(environ: Mapping[str, str]) -> Layer:
    keys = {**{variable_of(key): key for key in [*OLDER, *OPTIONS]}, _TOKEN: "rest.token"}
    found: Layer = {}
    for name, value in environ.items():
        if not name.startswith("FIRESTEEL_") or name in _OTHER_VARIABLES:
            continue
        if name in keys:
            found[keys[name]] = Setting(value, f"environment variable {name}")
            continue
        # a variable may well be somebody else's (Kubernetes makes some for each service), but not if it looks like ours
        meant = nearest(
            name.removeprefix("FIRESTEEL_"), [known.removeprefix("FIRESTEEL_") for known in keys], _MISSPELT
        )
        if meant is not None:
            raise ConfigurationError(f"environment variable {name}: unknown setting; did you mean FIRESTEEL_{meant}?")
        log.debug("environment variable %s is no setting", name)
    return found


def _current(layer: Layer) -> Layer:
    """One layer, under current names. What is set under two names at once is a mistake: which one counts?"""
    found: Layer = {}
    for key, setting in layer.items():
        try:
            if not is_without_effect(key):
                check_known(key)
        except ConfigurationError as error:
            raise ConfigurationError(f"{setting.source}: {error}") from None
        for name, one in _parts(current_name(key), setting).items():
            other = found.get(name)
            if other is not None and other.value != one.value:
                raise ConfigurationError(
                    f"{one.source}: {name} is set to {one.value!r}, and by {other.source} to {other.value!r}"
                )
            found[name] = one
    return found


def _parts(key: str, setting: Setting) -> Layer:
    """Parameters one by one, so that a nearer layer can change one of them."""
    if key != PARAMETERS:
        return {key: setting}
    try:
        pairs = read(key, setting.value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{setting.source}: {error}") from None
    return {f"{PARAMETERS}.{name}": Setting(value, setting.source) for name, value in pairs.items()}
