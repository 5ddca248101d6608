from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.supervisor import Arena


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Arena]:
    arena = Arena(tmp_path)
    try:
        yield arena
    finally:
        arena.close()
