"""`-D` and its shorter forms."""

from __future__ import annotations

import argparse
import logging
import os

from firesteel.common.config_files import Setting
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.configured import Layer, configured
from firesteel.datastream.options import current_name
from firesteel.errors import ConfigurationError


def add_definitions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-D", dest="definitions", action="append", default=[], metavar="key=value", help="a setting; may be repeated"
    )


def definitions(given: argparse.Namespace) -> Layer:
    """What `-D` says; the last one of each key."""
    settings: Layer = {}
    for text in given.definitions:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"-D{text}: write a setting as -Dkey=value")
        settings[key.strip()] = Setting(value.strip(), f"-D{key.strip()}")
    return settings


def on_command_line(given: argparse.Namespace) -> Layer:
    """What `run` was told, by `-D` or by its other options."""
    defined, short = definitions(given), _short_forms(given)
    for key in defined:
        other = short.get(current_name(key))
        if other is not None and other.value != defined[key].value:
            raise ConfigurationError(
                f"{other.source} says {other.value}, and {defined[key].source} says {defined[key].value}"
            )
    return {**defined, **short}


def check_settings() -> StreamExecutionEnvironment:
    """Find mistakes before a program has run half way. (This also puts `python.files` on the path, for its imports.)

    :raises ConfigurationError: with where the mistake is.
    """
    log = logging.getLogger("firesteel")
    log.disabled = True  # the program's own environment will say the same
    try:
        return configured(StreamExecutionEnvironment())
    finally:
        log.disabled = False


def _short_forms(given: argparse.Namespace) -> Layer:
    settings: Layer = {}
    if given.parallelism is not None:
        settings["parallelism.default"] = Setting(given.parallelism, "-p")
    if given.master is not None:
        settings["spark.master"] = Setting(given.master, "--master")
    if given.savepoint is not None:
        path = given.savepoint if "://" in given.savepoint else os.path.abspath(given.savepoint)
        settings["execution.state-recovery.path"] = Setting(path, "-s")
    if given.allow_non_restored_state:
        settings["execution.state-recovery.ignore-unclaimed-state"] = Setting("true", "-n")
    if given.claim is not None:
        source = f"--{given.claim.lower().replace('_', '-')}"
        settings["execution.state-recovery.claim-mode"] = Setting(given.claim, source)
    if given.resume:
        settings["firesteel.resume"] = Setting("true", "--resume")
    if given.take_over:
        settings["firesteel.take-over"] = Setting("true", "--take-over")
    return settings
