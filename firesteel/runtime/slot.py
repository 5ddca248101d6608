"""The slot process: one for each parallel index, living as long as its incarnation of the job.

Spark's Python workers come and go; they only pump. A slot keeps what must stay: user objects, open connections, state.
It ends when the driver says so, when it loses the driver, and with Spark's executor, whose process group it is in.

Bootstrap: the worker that starts a slot writes one JSON line (who it is, whom to call) and the packed program to its
standard input, and reads one JSON line from its standard output: its address, or why it could not start.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from firesteel.common.crashpoints import crash_point
from firesteel.errors import SlotLostError
from firesteel.graph.settings import RocksDBSettings
from firesteel.graph.shipping import install_main_classes, unpack_plan
from firesteel.runtime.failures import describe
from firesteel.runtime.output import ForwardedStream
from firesteel.runtime.place import SlotPlace
from firesteel.runtime.task import LevelOrder, SlotTask
from firesteel.runtime.wire import BATCH, FrameReader, FrameWriter, Messages, authenticate
from firesteel.state.origin import Origin

_HEARTBEAT_S = 1.0
_GRACE_S = 5.0
_COLLECT_S = 20.0

Step = tuple[int, int]
"""Epoch and level."""


class Pump(NamedTuple):
    """A Spark worker's task that has come with the input of a step, for its output."""

    connection: socket.socket
    payloads: Iterator[bytes]
    writer: FrameWriter
    extra: dict[str, Any]  # what it knows of the step that was not known when the epoch was ordered

    def alive(self) -> bool:
        """Whether its process is still there, as it may have waited for long. Closes the connection if it is not."""
        try:
            if self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                return True
        except BlockingIOError:
            return True
        except OSError:
            pass
        self.connection.close()
        return False


class Slot:
    """The process around a SlotTask: a listener for pumps and a control connection to the driver."""

    def __init__(self, home: str, boot: dict[str, Any], program: bytes, main_classes: bytes) -> None:
        self._slot, self._incarnation = boot["slot"], boot["incarnation"]
        self._key = bytes.fromhex(boot["key"])
        self._stopping = False
        self._failure: dict[str, Any] | None = None  # why the epoch failed, and with it this incarnation
        self._orders: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()  # epochs; None: stop
        self._pumps: dict[Step, Pump] = {}  # those that wait for their turn
        self._task: SlotTask | None = None
        self._last_collect = time.monotonic()
        self._home = home
        signal.signal(signal.SIGHUP, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)
        self._control = _call_driver(boot["driver"], self._key)
        self._say_lock = threading.Lock()
        sys.stdout = ForwardedStream(lambda text: self.tell({"type": "output", "stream": "stdout", "text": text}))
        sys.stderr = ForwardedStream(lambda text: self.tell({"type": "output", "stream": "stderr", "text": text}))
        self._listener = socket.socket(socket.AF_UNIX)
        self.address = os.path.join(self._home, "s")
        self._listener.bind(self.address)
        self._listener.listen(16)
        self.tell({"type": "hello", "slot": self._slot, "incarnation": self._incarnation, "pid": os.getpid()})
        place = SlotPlace(
            job_id=boot["job_id"],
            slot=self._slot,
            incarnation=self._incarnation,
            attempt=boot["attempt"],
            directory=boot["directory"],
            restore=tuple(boot["restore"]),
            origin=Origin(**boot["origin"]) if boot["origin"] is not None else None,
            main_classes=main_classes,
            parameters=boot["parameters"],
            checkpointing=boot["checkpointing"],
            max_state_size=boot["max_state_size"],
            rocksdb=RocksDBSettings(**boot["rocksdb"]) if boot["rocksdb"] is not None else None,
            scratch=os.path.dirname(home),
            on_restored=lambda size: self.tell({"type": "restored", "bytes": size}),
        )
        crash_point("slot-restore")
        plan = unpack_plan(program)
        self._levels = plan.levels
        self._task = SlotTask(plan, place, self.tell)
        gc.collect()
        gc.freeze()
        gc.disable()
        threading.Thread(target=self._listen_to_driver, name="control", daemon=True).start()
        self._say_alive()  # restored and ready: watched from now on, since even the first record can make it hang
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    @property
    def task(self) -> SlotTask:
        assert self._task is not None
        return self._task

    def tell(self, message: dict[str, Any]) -> None:
        """Send the driver a message; it being gone is noticed by the thread that listens to it."""
        with self._say_lock, contextlib.suppress(OSError):
            self._control.send(message)

    def serve(self) -> None:
        """Run one epoch after the other until told to stop."""
        while (order := self._orders.get()) is not None:
            for level in range(self._levels):
                if level:
                    self._begin(LevelOrder(**{**order, "level": level}))
                pump = self._await_pump((order["epoch"], level))
                if pump is None:
                    break
                with pump.connection:
                    self._run(pump, LevelOrder(**{**order, "level": level, **pump.extra}))
                self._tidy()
        for pump in self._pumps.values():  # they have come for an epoch that will not be
            with pump.connection, contextlib.suppress(OSError):
                pump.writer.end()
        self.task.close()

    def _await_pump(self, step: Step) -> Pump | None:
        """The pump that has come for this step, or comes. Others may come early, and wait. None: the slot stops."""
        while not self._stopping:
            pump = self._pumps.pop(step, None)
            if pump is not None and pump.alive():
                return pump
            connection, _ = self._listener.accept()
            self._welcome(connection)
        return None

    def _welcome(self, connection: socket.socket) -> None:
        try:
            authenticate(connection, self._key, server=True)
            reader, writer = FrameReader(connection), FrameWriter(connection)
            hello = json.loads(reader.read()[2])
            payloads = _payloads(reader) if hello["level"] else iter([*_payloads(reader)])  # for level 0 there are none
        except (OSError, ValueError, SlotLostError):
            connection.close()
            return  # a stranger, or a pump that died while connecting; the driver learns of it from Spark
        step = hello["epoch"], hello["level"]
        try:
            if self._failure is not None:
                raise SlotLostError(f"slot {self._slot} has failed and runs nothing any more")
            if hello["incarnation"] != self._incarnation:
                raise SlotLostError(f"slot {self._slot} belongs to incarnation {self._incarnation}")
            self.task.expect(*step)
        except SlotLostError as error:
            self._fail(error, writer)
            connection.close()
            return
        if step in self._pumps:
            self._pumps[step].connection.close()  # its task failed while it waited, and another one was started
        self._pumps[step] = Pump(connection, payloads, writer, hello["extra"])

    def _begin(self, order: LevelOrder) -> None:
        """Do what can be done while nobody has come for the level."""
        if self._failure is None:
            try:
                self.task.begin_level(order)
            except Exception as error:  # noqa: BLE001  as in `_run`; whoever comes for the level is refused
                self._fail(error)

    def _run(self, pump: Pump, order: LevelOrder) -> None:
        try:
            self.task.run_level(order, pump.payloads, pump.writer.batch)
            sys.stdout.flush()
            sys.stderr.flush()
            pump.writer.end()
        except Exception as error:  # noqa: BLE001  every failure ends the epoch, and the driver has to know why
            self._fail(error, pump.writer)

    def _fail(self, error: Exception, writer: FrameWriter | None = None) -> None:
        failure = describe(error)
        self._failure = self._failure or failure
        sys.stdout.flush()
        sys.stderr.flush()
        self.tell({"type": "failed", "slot": self._slot, "failure": failure})  # before the pump can make Spark fail
        if writer is not None:
            with contextlib.suppress(OSError):
                writer.failed(failure)

    def _tidy(self) -> None:
        """Between levels: collect cycles now and then, and keep what survived out of the next collection."""
        if time.monotonic() - self._last_collect > _COLLECT_S:
            gc.collect()
            gc.freeze()
            self._last_collect = time.monotonic()

    def _listen_to_driver(self) -> None:
        while (message := self._control.receive()) is not None:
            if message["type"] == "epoch":
                self._orders.put(message["order"])
            elif message["type"] == "stop":
                self._stopping = True
                self._orders.put(None)
                with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as poke:
                    poke.connect(self.address)
                threading.Event().wait(_GRACE_S)  # a function may be stuck; the process exits sooner if it is not
                self._end(1)
            else:
                self.task.order(message)
        self._end(1)  # the driver is gone, and with it the job

    def _beat(self) -> None:
        pause = threading.Event()
        while not pause.wait(_HEARTBEAT_S):
            sys.stdout.flush()
            sys.stderr.flush()
            self._say_alive()

    def _say_alive(self) -> None:
        self.tell({"type": "heartbeat", "slot": self._slot, "rss": _resident_bytes()})

    def _on_signal(self, *_: object) -> None:
        self._end(1)

    def _end(self, code: int) -> None:
        if self._task is not None:
            self._task.stop_processes()
        shutil.rmtree(self._home, ignore_errors=True)
        os._exit(code)

    def finish(self) -> None:
        """A clean end: say so, then leave nothing behind."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.tell({"type": "bye", "slot": self._slot})
        self._end(0)


def _payloads(reader: FrameReader) -> Iterator[bytes]:
    while True:
        kind, _, payload = reader.read()
        if kind != BATCH:
            return
        yield payload


def _call_driver(address: list[Any], key: bytes) -> Messages:
    connection = socket.create_connection((address[0], address[1]))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    authenticate(connection, key, server=False)
    return Messages(connection)


def _private_directory(scratch: str, prefix: str) -> str:
    """A 0700 directory on this machine: below the driver's own if that is here, so that it is removed with it.

    A Unix socket's path has room for 107 bytes only.
    """
    if os.path.isdir(scratch) and len(scratch) + len(prefix) < 80:
        return tempfile.mkdtemp(prefix=prefix, dir=scratch)
    return tempfile.mkdtemp(prefix="firesteel-" + prefix, dir="/tmp" if len(tempfile.gettempdir()) > 60 else None)


def _resident_bytes() -> int:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # not Linux


def main() -> None:
    """Entry point of the process, given to `python -c` so that `__main__` is free for the user's classes."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    boot = json.loads(sys.stdin.buffer.readline())
    main_classes = sys.stdin.buffer.read(boot["main_size"])
    program = sys.stdin.buffer.read(boot["program_size"])
    sys.path[:] = boot["path"] + [entry for entry in sys.path if entry not in boot["path"]]
    home = _private_directory(boot["scratch"], f"slot-{boot['incarnation']}-{boot['slot']}-")
    try:
        install_main_classes(main_classes)
        slot = Slot(home, boot, program, main_classes)
    except Exception as error:  # noqa: BLE001  whoever starts a slot has to know why it did not start
        shutil.rmtree(home, ignore_errors=True)
        answer.write(json.dumps({"failure": describe(error)}) + "\n")
        answer.flush()
        os._exit(1)
    answer.write(json.dumps({"address": slot.address, "pid": os.getpid(), "host": socket.gethostname()}) + "\n")
    answer.close()
    slot.serve()
    slot.finish()
