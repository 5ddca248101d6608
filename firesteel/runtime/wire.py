"""How processes of a job talk: authenticated sockets, frames, and the rows that travel through Spark's shuffle.

A **row** is `(address, payload)`. The address is a 64-bit number that Spark sorts and partitions by:

    sequence (upper 32 bits) | upstream slot * slots + target slot (lower 32 bits)

Taken modulo the number of slots its lower half is the target, and its order is (sequence, upstream), so a level consumes
its input in an order that does not depend on which shuffle block arrived first. The payload starts with the level that
consumes it, the edge it travels on and the slot it comes from; `DRIVER` as level means that every level passes it on
until the driver has it. A payload of nothing else says that a channel which was idle is not any more. Such rows have the
sequence 0, so they come before all others: event time must not get ahead of records that are on their way.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import struct
from typing import Any

from firesteel.errors import SlotLostError

ROW = struct.Struct(">HIH")  # consumer's level, edge, upstream slot
DRIVER = 0xFFFF
REPORT, COLLECTED, FRAME = 0, 1, 2  # "edges" to the driver

_FRAME = struct.Struct(">BqI")  # kind, address, payload length
BATCH, END, FAILED = 1, 2, 3


def address_of(sequence: int, upstream: int, target: int, slots: int) -> int:
    return sequence << 32 | upstream * slots + target


def target_of(address: int, slots: int) -> int:
    """The slot a row goes to, by the rule of Spark's PythonPartitioner."""
    return (address & 0xFFFFFFFF) % slots


class FrameWriter:
    """Frames onto a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("wb", buffering=1 << 18)

    def batch(self, address: int, payload: bytes | memoryview) -> None:
        self._file.write(_FRAME.pack(BATCH, address, len(payload)))
        self._file.write(payload)

    def end(self) -> None:
        self._file.write(_FRAME.pack(END, 0, 0))
        self._file.flush()

    def failed(self, failure: dict[str, Any]) -> None:
        payload = json.dumps(failure).encode()
        self._file.write(_FRAME.pack(FAILED, 0, len(payload)) + payload)
        self._file.flush()


class FrameReader:
    """Frames from a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb", buffering=1 << 18)

    def read(self) -> tuple[int, int, bytes]:
        """Kind, address and payload of the next frame."""
        kind, address, length = _FRAME.unpack(self._exactly(_FRAME.size))
        return kind, address, self._exactly(length) if length else b""

    def _exactly(self, count: int) -> bytes:
        data: bytes = self._file.read(count)
        if len(data) != count:
            raise SlotLostError(
                "the connection was closed in the middle of an epoch: the process at its other end died"
            )
        return data


class Messages:
    """JSON messages over a socket, each with its length before it. `send` may be called by several threads."""

    _LENGTH = struct.Struct(">I")

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._file = connection.makefile("rb")

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        self._socket.sendall(self._LENGTH.pack(len(data)) + data)

    def receive(self) -> dict[str, Any] | None:
        """The next message, None when the other side is gone."""
        try:
            head = self._file.read(self._LENGTH.size)
            if len(head) < self._LENGTH.size:
                return None
            data = self._file.read(self._LENGTH.unpack(head)[0])
        except (OSError, ValueError):
            return None
        if len(data) < self._LENGTH.unpack(head)[0]:
            return None
        message: dict[str, Any] = json.loads(data)
        return message

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the other side was faster
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def authenticate(connection: socket.socket, key: bytes, *, server: bool) -> None:
    """Both sides prove that they know the job's key, without sending it.

    :raises ConnectionError: the other side does not know it.
    """
    mine, theirs = (b"server", b"client") if server else (b"client", b"server")
    challenge = os.urandom(32)
    connection.sendall(challenge)
    other = _receive(connection, 32)
    connection.sendall(hmac.digest(key, mine + other, "sha256"))
    if not hmac.compare_digest(_receive(connection, 32), hmac.digest(key, theirs + challenge, "sha256")):
        raise ConnectionError("the other side does not know this job's key")


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise ConnectionError("the connection was closed while authenticating")
        data += part
    return data
