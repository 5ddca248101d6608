"""What user code prints in a slot reaches the user: lines go to the driver, which prints them."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable

_ENOUGH = 1 << 15


class ForwardedStream(io.TextIOBase):
    """Stands for sys.stdout or sys.stderr in a slot. Sends whole lines, many at a time; `flush` sends what there is."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        super().__init__()
        self._forward = forward
        self._parts: list[str] = []
        self._size = 0
        self._lock = threading.Lock()

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            self._parts.append(text)
            self._size += len(text)
            if self._size >= _ENOUGH:
                self._send()
        return len(text)

    def flush(self) -> None:
        with self._lock:
            self._send()

    def _send(self) -> None:
        if self._parts:
            text = "".join(self._parts)
            self._parts.clear()
            self._size = 0
            self._forward(text)
