"""Two ways to run an example in this process."""

from __future__ import annotations

import pytest

from tests.examples.running import LocalClient, Runner


@pytest.fixture
def spark(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Runner:
    """On an embedded Spark, the same one for all tests of this process."""
    return Runner(capsys, monkeypatch)


@pytest.fixture
def local(spark: Runner, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Without Spark, in milliseconds."""
    monkeypatch.setattr("firesteel.client.launch", LocalClient)
    return spark
