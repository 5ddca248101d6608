"""Waiting for what happens in another thread or process: long enough for a busy machine, and no longer than it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_S = 150.0


def wait_until(condition: Callable[[], Any], what: str) -> Any:
    deadline, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        pause.wait(0.005)
    return found


def wait_for_checkpoint() -> None:
    """Until none is on its way in this process."""
    for thread in threading.enumerate():
        if thread.name == "checkpoint":
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "waited in vain for a checkpoint"
