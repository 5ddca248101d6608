"""What runs in Spark's Python workers: nothing but moving bytes between Spark and a slot."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from firesteel.errors import SlotLostError
from firesteel.runtime.wire import BATCH, FAILED, ROW, FrameReader, FrameWriter, authenticate

ADDRESS = struct.Struct(">q")
Extra = list[dict[str, Any]] | None

_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "MALLOC_TOP_PAD_": str(16 << 20),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # large dicts in huge pages, where the system allows it
}
"""Settings of glibc for slots: keep the memory of a batch for the next one. Given back to the system and taken again for
every batch, it would be cleared page by page each time (measured: a tenth of a slot's time)."""


class StartSlot:
    """Task of the deploying job: start the slot of this partition's index and say where it listens."""

    def __init__(self, boots: list[dict[str, Any]], main_classes: bytes, program: bytes) -> None:
        self._boots, self._main_classes, self._program = boots, main_classes, program

    def __call__(self, index: int, _: Iterable[Any]) -> Iterator[bytes]:
        boot = {
            **self._boots[index],
            "main_size": len(self._main_classes),
            "program_size": len(self._program),
        }
        slot = subprocess.Popen(
            [sys.executable, "-c", "from firesteel.runtime.slot import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**_MALLOC, **os.environ, "PYTHONPATH": os.pathsep.join(p for p in boot["path"] if p)},
        )
        assert slot.stdin is not None and slot.stdout is not None
        with slot.stdin, slot.stdout:
            try:
                slot.stdin.write(json.dumps(boot).encode() + b"\n" + self._main_classes + self._program)
                slot.stdin.flush()
            except BrokenPipeError:
                pass  # it died already; the missing answer says so
            answer = slot.stdout.readline()
        if not answer:
            answer = json.dumps(
                {"failure": {"kind": "SlotLostError", "message": f"slot {index} died while starting"}}
            ).encode()
        yield answer


class PumpLevel:
    """Task of one level of an epoch: this partition's rows go into the slot, what it makes comes out.

    Rows of other levels are passed on unread. Their address stays, so they keep their order and their target.

    :param hello: what it comes for: incarnation, epoch and level. What to do there the slot knows from the driver.
    :param extra: what each slot is told beside that.
    """

    def __init__(self, hello: dict[str, Any], last: bool, slots: list[str], key: bytes, extra: Extra = None) -> None:
        self._level, self._last = hello["level"], last
        self._hello, self._slots, self._key = hello, slots, key
        self._extra = extra

    def __call__(self, index: int, rows: Iterable[bytes]) -> Iterator[bytes]:
        with _connect(self._slots[index], index) as connection:
            authenticate(connection, self._key, server=False)
            writer, reader = FrameWriter(connection), FrameReader(connection)
            extra = self._extra[index] if self._extra is not None else {}
            writer.batch(0, json.dumps({**self._hello, "extra": extra}).encode())
            passed: list[bytes] = []
            feeder = None
            if self._level == 0:
                writer.end()
            else:
                feeder = threading.Thread(target=self._feed, args=(rows, writer, passed, connection), daemon=True)
                feeder.start()
            while True:
                kind, address, payload = reader.read()
                if kind == BATCH:
                    yield from self._row(address, payload)
                elif kind == FAILED:
                    raise SlotLostError(f"slot {index} failed: {json.loads(payload)['message']}")
                else:
                    break
            if feeder is not None:
                feeder.join()
            for row in passed:
                yield from self._row(ADDRESS.unpack_from(row)[0], row[ADDRESS.size :])

    def _row(self, address: int, payload: bytes) -> Iterator[bytes]:
        """A pair for the shuffle; the driver, behind the last level, gets the payload alone."""
        if self._last:
            yield payload
        else:
            head = ADDRESS.pack(address)
            yield head
            yield head + payload

    def _feed(self, rows: Iterable[bytes], writer: FrameWriter, passed: list[bytes], connection: socket.socket) -> None:
        try:
            for row in rows:
                level, _, _ = ROW.unpack_from(row, ADDRESS.size)
                if level == self._level:
                    writer.batch(0, memoryview(row)[ADDRESS.size :])
                else:
                    passed.append(row)
            writer.end()
        except BaseException:  # noqa: BLE001  Spark's input failed or the slot died: the reading side must see it
            connection.close()


class PumpLastBeforeCut(PumpLevel):
    """The level before a cut: the driver gets rows with their addresses."""

    def _row(self, address: int, payload: bytes) -> Iterator[bytes]:
        yield ADDRESS.pack(address) + payload


class FromDriver:
    """The level behind a cut: its rows come from the driver, in one list for each partition."""

    def __init__(self, level: PumpLevel) -> None:
        self._level = level

    def __call__(self, index: int, handed: Iterable[list[bytes]]) -> Iterator[bytes]:
        return self._level(index, chain.from_iterable(handed))


def _connect(address: str, index: int) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
    except OSError as error:
        connection.close()
        raise SlotLostError(f"slot {index} cannot be reached at {address}: {error.strerror}") from None
    return connection
