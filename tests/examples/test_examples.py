"""Runs every example as its user would, on a real Spark, and checks what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"


def run(example: str, home: Path) -> list[str]:
    """The lines it printed, without the `1> ` that says which subtask printed one."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(REPOSITORY),
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # halves the time that Spark takes to start
    }
    # somewhere else than in the repository, so that leftovers would be seen
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example)],
        env=environment, cwd=home, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list(home.iterdir()) == []
    return [re.sub(r"^\d+> ", "", line) for line in done.stdout.splitlines()]


def test_word_count_emits_one_update_per_word(tmp_path: Path) -> None:
    lines = run("word_count.py", tmp_path)
    assert [line for line in lines if "hadoop" in line] == [f"('hadoop', {count})" for count in (1, 2, 3, 4)]
    assert [line for line in lines if "hadoop" not in line] == ["('hive', 1)"]


def test_running_average_is_kept_in_value_state(tmp_path: Path) -> None:
    assert run("running_average.py", tmp_path) == [f"key 1: average {average}" for average in (4.0, 5.0, 4.75, 4.2)]


def test_sensor_alert_compares_readings_of_one_sensor_only(tmp_path: Path) -> None:
    assert run("sensor_alert.py", tmp_path) == ["oven went from 24.5 to 61.0"]


def test_readme_shows_the_sensor_alert_example_as_it_is() -> None:
    assert f"```python\n{(EXAMPLES / 'sensor_alert.py').read_text()}```" in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_every_example_is_tested(example: str) -> None:
    assert f'run("{example}"' in Path(__file__).read_text()
