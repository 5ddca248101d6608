"""A few examples on a real Spark, which is started once: what is left to find out after test_examples.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, REPOSITORY, SUBTASK, Runner

PRINTED = {
    "running_average.py": [f"key 1: average {average}" for average in (4.0, 5.0, 4.75, 4.2)],
    "rising_temperature.py": ["oven has been rising since 4000"],
    "temperature_jump.py": ["oven went from 20.0 to 41.0 within 49 seconds"],
    "side_outputs.py": [
        "broken> oven ?",
        "cold> roof is freezing",
        "cold> yard is freezing",
        "readings> (cellar,12.0)",
        "readings> (oven,180.5)",
        "readings> (roof,-8.0)",
        "readings> (yard,-3.5)",
        "readings> (yard,1.5)",
    ],
    "enrichment.py": ["(s1,kitchen,20.0)", "(s1,kitchen,21.5)", "(s2,cellar,12.0)", "(s2,cellar,12.5)"],
    "buffering_sink.py": ["or and not", "that and is", "to and be", "to and be"],
    "metrics.py": ["180.0", "20.5", "21.0", "22.5", "dropped: 2"],
}


@pytest.mark.parametrize("example", PRINTED)
def test_it_prints_on_spark_what_it_prints_without(spark: Runner, example: str) -> None:
    assert sorted(spark.run(example)) == sorted(PRINTED[example])


def test_an_example_is_started_like_any_program_and_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # halves the time that Spark takes to start
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "sensor_alert.py")],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert SUBTASK.sub("", done.stdout) == "oven went from 24.5 to 61.0\n"
    assert list(tmp_path.iterdir()) == []


def test_repair_state_goes_on_from_the_corrected_balance(tmp_path: Path) -> None:
    """examples/repair_state.py runs in a process of its own, as it brings its own session."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "repair_state.py")],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [SUBTASK.sub("", line) for line in done.stdout.splitlines()]
    assert "ann: 5030 becomes 80" in lines
    assert sorted(lines[-2:]) == ["('ann', 90)", "('bob', 30)"]
