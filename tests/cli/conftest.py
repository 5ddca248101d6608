"""Commands in this process: what they change of it is put back."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import firesteel.client
from firesteel.cli.main import main
from firesteel.datastream import configured
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings
from tests.support.local_engine import DescribingEngine

Command = Callable[..., tuple[int, str, str]]


class EngineForSpark(DescribingEngine):
    """Takes the place of Spark in a client."""

    def __init__(self, plan: JobPlan, settings: JobSettings) -> None:
        super().__init__(plan)

    def frames(self) -> Any:
        return None


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """Runs `firesteel ...` in an empty directory: exit code, output, complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FLINK_CONF_DIR", raising=False)
    monkeypatch.setattr(firesteel.client, "SparkEngine", EngineForSpark)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv[:])
    monkeypatch.setattr(sys, "path", sys.path[:])

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's, which a program would not find
        try:
            code: Any = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    log = logging.getLogger("firesteel")
    handlers, level = log.handlers[:], log.level
    yield run
    log.handlers, log.level = handlers, level
    configured.hand_over({})
