"""Merging a chain of state files into one, in a process of its own so that the slot never waits for it.

The process reads an order as JSON on standard input and prints the output's handle. The order
carries the slot's import path and the user's main classes, because state may hold instances of the user's classes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import Any

from firesteel.common.storage import Storage, open_storage
from firesteel.errors import CheckpointError
from firesteel.graph.shipping import install_main_classes
from firesteel.state.files import Delta, StateFile, StateFileWriter
from firesteel.state.layouts import merge, whole
from firesteel.state.parts import wanted_of


class Compaction:
    """A running compaction."""

    def __init__(self, storage: Storage, output: str, inputs: list[dict[str, Any]], main_classes: bytes) -> None:
        self.inputs, self.output = inputs, output
        order = {
            "storage": storage.uri,
            "output": output,
            "inputs": inputs,
            "path": sys.path,
            "main": base64.b64encode(main_classes).decode(),
        }
        # -c and not -m, so that the user's main classes get a main module of their own
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from firesteel.state.compaction import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is dead already, and result() will say so
            self._process.stdin.write(json.dumps(order).encode())
            self._process.stdin.close()
        self._process.stdin = None  # communicate() would flush it

    def running(self) -> bool:
        return self._process.poll() is None

    def result(self) -> dict[str, Any]:
        """The compacted file's handle, once it is not running any more.

        :raises CheckpointError: it failed; the chain it read is untouched.
        """
        answer, complaint = self._process.communicate()
        if self._process.returncode != 0:
            why = complaint.decode(errors="replace")[-2000:].strip()
            raise CheckpointError(f"{_how_it_ended(self._process.returncode)}{': ' if why else ''}{why}")
        handle: dict[str, Any] = json.loads(answer)
        return handle

    def kill(self) -> None:
        """End it at once, without waiting for it: a handler of signals may have interrupted somebody who does, and would
        wait for ever."""
        self._process.kill()

    def wait(self) -> None:
        """Until it has ended, however it did."""
        self._process.communicate()


def _how_it_ended(code: int) -> str:
    if code > 0:
        return f"it ended with exit status {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"it was killed by {names.get(-code, f'signal {-code}')}"


def compact(storage: Storage, output: str, inputs: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the files, as far as they stand for something in this chain, the later ones winning, and write the result
    durably."""
    merged: dict[tuple[str, str, str, int], dict[Any, Any]] = {}
    slot = checkpoint = 0
    for handle in inputs:
        with StateFile(handle["file"], handle["checksum"], storage) as file:
            slot, checkpoint = file.footer["slot"], max(checkpoint, file.footer["checkpoint"])
            for delta in file.deltas(wanted_of(handle)):
                content = merged.setdefault((delta.uid, delta.name, delta.kind, delta.group), {})
                merge(delta.kind, content, delta.keys, delta.values, delta.deleted)
    writer = StateFileWriter(slot, checkpoint)
    for (uid, name, kind, group), content in merged.items():
        writer.add(Delta(uid, name, kind, group, list(content), whole(kind, content), []))
    data, checksum = writer.finish()
    storage.write(output, data)
    return writer.handle(output, data, checksum)


def main() -> None:
    os.nice(10)
    order = json.load(sys.stdin)
    sys.path[:] = order["path"]
    install_main_classes(base64.b64decode(order["main"]))
    handle = compact(open_storage(order["storage"]), order["output"], order["inputs"])
    print(json.dumps(handle))  # noqa: T201  this is its answer
