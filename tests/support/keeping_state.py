"""Where the slots of a harness have their state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

from firesteel.coordinator.engine import Deployment
from firesteel.graph.settings import RocksDBSettings
from firesteel.testing.engine import LocalEngine


@contextlib.contextmanager
def keeping_state(in_rocksdb: bool, directory: str) -> Iterator[None]:
    """Harnesses have state in memory; their slots can have it elsewhere."""
    deploy = LocalEngine.deploy
    rocksdb = RocksDBSettings(local_directories=(f"{directory}/local",)) if in_rocksdb else None

    def deployed(self: LocalEngine, deployment: Deployment, listener: Any) -> None:
        deploy(self, replace(deployment, rocksdb=rocksdb), listener)

    with mock.patch.object(LocalEngine, "deploy", deployed):
        yield
