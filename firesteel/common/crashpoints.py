"""Named places where a test can make a process die, as suddenly as a power cut.

`FIRESTEEL_CRASH=after-metadata:3` kills the process with SIGKILL the third time it gets to `after-metadata`;
`FIRESTEEL_CRASH=after-metadata:3:stop` stops it with SIGSTOP instead, until somebody sends SIGCONT. With
`FIRESTEEL_CRASH_ONCE=<path>` it happens in one process only: the one that manages to create that file.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

_armed = os.environ.get("FIRESTEEL_CRASH", "")
_seen: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Die here if a test asked for it."""
    if not _armed:
        return
    target, _, rest = _armed.partition(":")
    if target != name:
        return
    _seen[name] += 1
    count, _, action = rest.partition(":")
    if _seen[name] == int(count or 1) and _first_of_all():
        os.kill(os.getpid(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)


def _first_of_all() -> bool:
    marker = os.environ.get("FIRESTEEL_CRASH_ONCE")
    if not marker:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
