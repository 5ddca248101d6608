"""The driver's end of the control connections: one for each slot, JSON both ways, no data."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from firesteel.runtime.wire import Messages, authenticate

Listener = Callable[[dict[str, Any]], None]

_AUTHENTICATION_S = 10.0


class ControlServer:
    """Listens for slots of one job and passes on what those of the current incarnation say."""

    def __init__(self, host: str, key: bytes, heartbeat_timeout_s: float = 50.0) -> None:
        self._key = key
        self._silence_s = heartbeat_timeout_s
        self._heard: dict[int, tuple[float, int]] = {}  # slot -> when it last said something, its process
        self._closed = threading.Event()
        self._listener = socket.create_server((host, 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._incarnation = 0
        self._on_message: Listener = _ignore
        self._slots: dict[int, Messages] = {}
        self._failure: dict[str, Any] | None = None
        self._lost = False  # whether a slot of this incarnation is gone without a word
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        threading.Thread(target=self._accept, name="control-accept", daemon=True).start()
        threading.Thread(target=self._watch, name="control-watch", daemon=True).start()

    def expect(self, incarnation: int, on_message: Listener) -> None:
        """A new incarnation: only its slots count from now on."""
        with self._changed:
            self._incarnation, self._on_message = incarnation, on_message
            self._failure, self._lost = None, False
            self._heard.clear()

    def stop_slots(self, timeout: float) -> None:
        """Ask all slots to end, and wait until they have; those that do not are cut off, which ends them too."""
        with self._changed:
            slots = dict(self._slots)
        for slot in slots:
            self.send(slot, {"type": "stop"})
        with self._changed:
            self._changed.wait_for(lambda: not self._slots, timeout)
            for messages in self._slots.values():
                messages.close()

    def send(self, slot: int, message: dict[str, Any]) -> None:
        """That the slot is gone is noticed by whoever listens to it."""
        with self._changed:
            messages = self._slots.get(slot)
        if messages is not None:
            with self._sending, contextlib.suppress(OSError):
                messages.send(message)

    def failure(self, timeout: float) -> dict[str, Any] | None:
        """What a slot said it failed with. It says so before Spark can notice, so a short wait is enough; and none at all
        when one died, which explains everything."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None or self._lost, timeout)
            return self._failure

    def close(self) -> None:
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept(), which close() alone does not
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), name="control", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_AUTHENTICATION_S)
        try:
            authenticate(connection, self._key, server=True)
        except OSError:
            connection.close()
            return
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        messages = Messages(connection)
        hello = messages.receive()
        if hello is None or hello["incarnation"] != self._incarnation:
            messages.close()
            return
        slot = hello["slot"]
        with self._changed:
            self._slots[slot] = messages
        ended = False
        while (message := messages.receive()) is not None:
            if hello["incarnation"] != self._incarnation:
                break
            message["slot"] = slot
            if message["type"] == "heartbeat":  # the first one comes when the slot has restored its state
                self._heard[slot] = time.monotonic(), hello["pid"]
            ended = ended or message["type"] == "bye"
            if message["type"] == "failed":
                with self._changed:
                    self._failure = self._failure or message["failure"]
                    self._changed.notify_all()
            else:
                self._on_message(message)
        messages.close()
        if not ended and hello["incarnation"] == self._incarnation:
            self._on_message({"type": "lost", "slot": slot})
        with self._changed:
            self._lost = self._lost or (not ended and hello["incarnation"] == self._incarnation)
            if self._slots.get(slot) is messages:
                del self._slots[slot]
                self._heard.pop(slot, None)
            self._changed.notify_all()

    def _watch(self) -> None:
        """A slot that hangs (stopped, or stuck in a call that holds Python's lock) would keep its epoch waiting for ever.
        It is killed, which the epoch notices."""
        while not self._closed.wait(min(1.0, self._silence_s / 4)):
            for slot, (heard, pid) in list(self._heard.items()):
                silent = time.monotonic() - heard
                if silent > self._silence_s:
                    why = (
                        f"slot {slot} (process {pid}) has not been heard of for {silent:.0f} s and was killed: it hung"
                    )
                    with self._changed:
                        self._failure = self._failure or {"kind": "SlotLostError", "message": why}
                        self._heard.pop(slot, None)
                        self._changed.notify_all()
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)


def _ignore(_: dict[str, Any]) -> None:
    """Before the first incarnation nobody listens."""
