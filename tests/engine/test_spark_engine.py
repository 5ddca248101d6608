"""What the engine refuses before it does anything, and what it says of Spark's failures."""

from __future__ import annotations

import pytest

from firesteel.engine.spark_engine import _innermost, refuse_cluster
from firesteel.errors import ConfigurationError


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host:443"])
def test_a_cluster_is_refused_with_what_to_use_instead(master: str) -> None:
    with pytest.raises(ConfigurationError, match=r"one machine only.*local\[N\]"):
        refuse_cluster(master)


def test_local_masters_are_fine() -> None:
    refuse_cluster("local[2]")


def test_of_a_traceback_of_a_worker_the_error_is_said() -> None:
    text = """An exception was thrown from the Python worker:
    Traceback (most recent call last):
      File "worker.py", line 71, in read_command
    ModuleNotFoundError: No module named 'firesteel'

        at org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
    java.lang.IllegalStateException: not this"""
    assert _innermost(RuntimeError(text)) == "ModuleNotFoundError: No module named 'firesteel'"
