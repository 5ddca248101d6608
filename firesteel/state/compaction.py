"""Merging a chain of state files into one, in a process of its own so that the slot never waits for it.

A slot's chain is kept short that way, and a savepoint is made of it: then the one file goes into the savepoint's directory.
Key groups are merged one at a time and written as they come, so neither the state nor the file has to fit into memory.

The process reads an order as JSON on standard input and prints the output's handle, and for a savepoint, before that, how
many bytes of the chain it has read. The order carries the slot's import path and the user's main classes, because state may
hold instances of the user's classes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import posixpath
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, BinaryIO

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import Storage, open_storage
from firesteel.errors import CheckpointError, FiresteelError
from firesteel.graph.shipping import install_main_classes
from firesteel.state.chains import deltas, native_part, state_files
from firesteel.state.files import Delta, StateFile, StateFileWriter
from firesteel.state.layouts import merge, whole
from firesteel.state.parts import wanted_of

_REPORT_S = 0.5


class Compaction:
    """A running compaction.

    :param into: the storage that the output goes to, if it is another one than the chain's.
    :param uids: operators whose state it is about; None: all.
    """

    def __init__(
        self,
        storage: Storage,
        output: str,
        inputs: list[dict[str, Any]],
        main_classes: bytes,
        into: str | None = None,
        uids: list[str] | None = None,
    ) -> None:
        self.inputs, self.output, self.into = inputs, output, into or storage.uri
        order = {
            "storage": storage.uri,
            "into": into,
            "output": output,
            "inputs": inputs,
            "uids": uids,
            "path": sys.path,
            "main": base64.b64encode(main_classes).decode(),
        }
        self._complaint = tempfile.TemporaryFile()  # noqa: SIM115  closed with the answer
        # -c and not -m, so that the user's main classes get a main module of their own
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from firesteel.state.compaction import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaint,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it is dead already, and result() will say so
            self._process.stdin.write(json.dumps(order).encode())
            self._process.stdin.close()
        self._process.stdin = None  # communicate() would flush it

    def running(self) -> bool:
        return self._process.poll() is None

    def follow(self, on_read: Callable[[int], None]) -> None:
        """Until it has ended, passing on how much it has read."""
        assert self._process.stdout is not None
        self._answer = b""
        for line in self._process.stdout:
            self._answer = line
            with contextlib.suppress(ValueError):  # torn, if it was killed
                if "read" in (said := json.loads(line)):
                    on_read(said["read"])

    def result(self) -> dict[str, Any]:
        """The compacted file's handle, once it is not running any more.

        :raises CheckpointError: it failed; the chain it read is untouched.
        """
        rest, _ = self._process.communicate()
        answer = (self._answer + rest).strip().rpartition(b"\n")[2]
        self._complaint.seek(0)
        complaint = self._complaint.read()
        self._complaint.close()
        if self._process.returncode != 0:
            why = complaint.decode(errors="replace")[-2000:].strip()
            raise CheckpointError(f"{_how_it_ended(self._process.returncode)}{': ' if why else ''}{why}")
        handle: dict[str, Any] = json.loads(answer)
        return handle

    _answer = b""

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


def compact(
    storage: Storage,
    output: str,
    inputs: list[dict[str, Any]],
    into: Storage | None = None,
    uids: Container[str] | None = None,
    on_read: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Merge the files, as far as they stand for something in this chain, the later ones winning, and write the result
    durably.

    This is the one place that makes a state file of a chain, whatever the chain is made of.

    :param into: where the output goes; None: to where the inputs are.
    :param uids: operators whose state it is about; None: all.
    :param on_read: told how many bytes each block had that was read.
    """
    into, on_read = into or storage, on_read or _nobody
    with contextlib.ExitStack() as opened:
        handles = state_files(inputs)
        files = [opened.enter_context(StateFile(each["file"], each["checksum"], storage)) for each in handles]
        footers = [file.footer for file in files] or [{"slot": 0, "checkpoint": 0}]  # a database does not say
        out = opened.enter_context(into.stream(output))
        writer = StateFileWriter(footers[-1]["slot"], max(footer["checkpoint"] for footer in footers), out)
        for delta in deltas(storage, native_part(inputs), on_read=on_read):
            on_read(0)
            if uids is None or delta.uid in uids:
                writer.add(delta)
        for delta in merged(list(zip(files, map(wanted_of, handles), strict=True)), uids, on_read):
            writer.add(delta)
        size, checksum = writer.end()
    into.persist(output)
    into.sync(posixpath.dirname(output))
    return writer.handle_of(output, size, checksum)


def merged(
    files: Sequence[tuple[StateFile, Callable[[str, int], bool]]],
    uids: Container[str] | None = None,
    on_read: Callable[[int], None] | None = None,
) -> Iterator[Delta]:
    """Every key group of every state, as it is after all of the files; those of which nothing is left are left out."""
    parts: dict[tuple[str, str, str, int], list[tuple[StateFile, dict[str, Any], list[Any]]]] = {}
    for file, wanted in files:
        for state in file.footer["states"]:
            uid = state["uid"]
            for entry in state["blocks"]:
                if wanted(uid, entry[0]) and (uids is None or uid in uids):
                    parts.setdefault((uid, state["name"], state["kind"], entry[0]), []).append((file, state, entry))
    for (uid, name, kind, group), changes in parts.items():
        content: dict[Any, Any] = {}
        for file, state, entry in changes:
            delta = file.delta(state, entry)
            merge(kind, content, delta.keys, delta.values, delta.deleted)
            if on_read is not None:
                on_read(entry[3])
        if content:
            yield Delta(uid, name, kind, group, list(content), whole(kind, content), [])


def _nobody(size: int) -> None: ...


class _Reports:
    """What the process says on its way. One whose slot is gone has nobody to work for."""

    def __init__(self, out: BinaryIO | None) -> None:
        self._out, self._parent = out, os.getppid()
        self._read, self._said = 0, time.monotonic()

    def on_read(self, size: int) -> None:
        crash_point("merging-state")
        if os.getppid() != self._parent:
            os._exit(1)
        self._read += size
        if self._out is not None and time.monotonic() - self._said >= _REPORT_S:
            self._said = time.monotonic()
            self._out.write(json.dumps({"read": self._read}).encode() + b"\n")
            self._out.flush()


def main() -> None:
    os.nice(10)
    order = json.load(sys.stdin)
    reports = _Reports(sys.stdout.buffer if order["into"] is not None else None)  # nobody follows the other kind
    sys.path[:] = order["path"]
    install_main_classes(base64.b64decode(order["main"]))
    storage = open_storage(order["storage"])
    into = open_storage(order["into"]) if order["into"] is not None else None
    try:
        handle = compact(storage, order["output"], order["inputs"], into, order["uids"], reports.on_read)
    except OSError as error:
        error.filename = error.filename or (into or storage).at(order["output"])
        sys.exit(str(error))
    except FiresteelError as error:
        sys.exit(str(error))
    print(json.dumps(handle))  # noqa: T201  this is its answer
