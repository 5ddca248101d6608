"""Named places where a test can make a process die, as suddenly as a power cut.

`FIRESTEEL_CRASH=after-metadata:3` kills the process with SIGKILL the third time it gets to `after-metadata`. A third part
says what happens instead: `stop` stops it with SIGSTOP until somebody sends SIGCONT, `wait-2.5` holds it up for so many
seconds, `full` raises the error of a full disk, and `torn-40` (of `durable-file-empty`) writes 40 % of the file first.

With `FIRESTEEL_CRASH_ONCE=<path>` it happens in one process only: the one that manages to create that file.
`FIRESTEEL_CRASH=@<path>` takes the order from a file, whenever there is one: the process that follows it renames the file
to `<path>.<its pid>` first. So one point after another can be armed while a job runs (`firesteel.testing.CrashPoints`).
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections import Counter
from typing import BinaryIO

_armed = os.environ.get("FIRESTEEL_CRASH", "")
_seen: Counter[str] = Counter()


def crash_point(name: str, file: BinaryIO | None = None, data: bytes = b"") -> None:
    """Die here if a test asked for it.

    :param file: where `data` is about to be written, for a file that is to be torn.
    """
    if not _armed:
        return
    order = _order()
    target, count, action, *_ = [*order.split(":"), "", "", ""]
    if target != name:
        return
    _seen[order] += 1
    if _seen[order] != int(count or 1) or not _first_of_all():
        return
    kind, _, amount = action.partition("-")
    if kind == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), getattr(file, "name", name))
    if kind == "wait":
        threading.Event().wait(float(amount))
        return
    if kind == "torn" and file is not None:
        file.write(data[: len(data) * int(amount) // 100])
        file.flush()
    os.kill(os.getpid(), signal.SIGSTOP if kind == "stop" else signal.SIGKILL)


def _order() -> str:
    if not _armed.startswith("@"):
        return _armed
    try:
        with open(_armed[1:]) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _first_of_all() -> bool:
    if _armed.startswith("@"):
        try:
            os.rename(_armed[1:], f"{_armed[1:]}.{os.getpid()}")
        except FileNotFoundError:
            return False
        return True
    marker = os.environ.get("FIRESTEEL_CRASH_ONCE")
    if not marker:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
