"""A slot's part of checkpoints: deltas serialised at the barrier, made durable while the next epoch runs.

A slot's state at checkpoint n is a **chain** of state files: a base, and the deltas since. A delta holds everything that
changed since the last *completed* checkpoint, so the chain of n is the chain of that base plus one file. Chains are kept
short by compaction, in a process of its own. Stores that take snapshots of their own add the files of those to the chain.
"""

from __future__ import annotations

import queue
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.common.storage import MemoryStorage, Storage
from firesteel.errors import SlotLostError
from firesteel.runtime.compacting import Compactor
from firesteel.runtime.whole_state import WholeState
from firesteel.state.chains import native_part, state_files
from firesteel.state.files import NO_GROUP, Delta, StateFileWriter
from firesteel.state.layouts import whole_scan
from firesteel.state.native import NativeState
from firesteel.state.serializing import unpicklable
from firesteel.state.store import Store, Table

FileHandle = dict[str, Any]  # {"file": path below the job's directory, "size": bytes, "checksum": hex}
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class KeyedStore:
    """A store and the operator it belongs to."""

    uid: str
    store: Store


class Snapshots:
    """Takes snapshots of this slot's stores."""

    def __init__(
        self,
        storage: Storage,
        incarnation: int,
        slot: int,
        stores: list[KeyedStore],
        chain: list[FileHandle],
        main_classes: bytes,
        tell: Tell,
        max_state_size: int | None = None,
        native: NativeState | None = None,
    ) -> None:
        """
        :param chain: the checkpoint's that the stores were restored from, as far as it is one to go on with.
        :param native: the state that is not in state files, if there is some.
        """
        self._storage = storage
        self._folder = f"inc-{incarnation}/state"
        self._slot = slot
        self._stores = stores
        self._tell = tell
        self._native = native
        self._base: list[FileHandle] = list(chain)  # the last completed checkpoint's chain
        self._chains: dict[int, list[FileHandle]] = {}
        self._compactor = Compactor(storage, self._folder, slot, main_classes)
        self._whole: WholeState | None = None
        if max_state_size is not None:
            assert isinstance(storage, MemoryStorage)
            self._whole = WholeState(storage, max_state_size, tell)
        self._broken: Exception | None = None
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write_all, name="snapshots", daemon=True)
        self._thread.start()

    def barrier(self, checkpoint: int, nonce: str, persist: Callable[[], None], *, whole: bool = False) -> None:
        """Serialise what changed; a thread makes it durable, as it does the sinks' output, and tells the driver.

        :param whole: serialise everything. Without checkpoints nobody notes what changed, and there is no chain.
        """
        writer = StateFileWriter(self._slot, checkpoint)
        entries = 0
        for operator in self._stores:
            for name, kind, table in operator.store.tables():
                for delta in _by_group(operator, name, kind, table, None if whole else checkpoint):
                    _add(writer, delta)
                    entries += len(delta.keys) + len(delta.deleted)
        native = None if whole else self._native
        if whole:
            with self._lock:
                self._base = []
        if native is not None:
            native.barrier(checkpoint)
        self._work.put(lambda: self._finish(checkpoint, nonce, persist, writer if entries else None, native))

    def check(self) -> None:
        """Raise what kept the sinks' output from becoming durable: it cannot be carried on, only made again."""
        if self._broken is not None:
            raise SlotLostError(f"output could not be made durable: {self._broken}") from self._broken

    def completed(self, checkpoint: int) -> None:
        """The driver says: that checkpoint is the base now. Called between epochs, by the slot's own thread."""
        for operator in self._stores:
            operator.store.completed(checkpoint)
        with self._lock:
            if checkpoint in self._chains:
                self._base = self._chains[checkpoint]
            self._chains = {n: chain for n, chain in self._chains.items() if n > checkpoint}
        native = self._native
        if native is not None:
            self._work.put(lambda: native.completed(checkpoint))

    def close(self) -> None:
        self._work.put(None)
        self._thread.join()
        self._compactor.close()

    def stop_compaction(self) -> None:
        """End the process that compacts, if there is one. Any thread may call this, and handlers of signals."""
        self._compactor.kill()

    def _write_all(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def _finish(
        self,
        checkpoint: int,
        nonce: str,
        persist: Callable[[], None],
        writer: StateFileWriter | None,
        native: NativeState | None,
    ) -> None:
        try:
            persist()
        except Exception as error:  # noqa: BLE001  raised again by check() on the slot's own thread
            self._broken = error
            self._tell({"type": "declined", "checkpoint": checkpoint, "nonce": nonce, "why": str(error)})
        else:
            self._write(checkpoint, nonce, writer, native)

    def _write(self, checkpoint: int, nonce: str, writer: StateFileWriter | None, native: NativeState | None) -> None:
        try:
            with self._lock:
                base = self._base
                chain = self._compactor.shortened(state_files(base))
            crash_point("slot-before-state-file")
            if writer is not None:
                data, checksum = writer.finish()
                name = f"{self._folder}/slot-{self._slot}-chk-{checkpoint}-{uuid.uuid4().hex}.state"
                self._storage.write(name, data)
                delta = writer.handle(name, data, checksum)
                chain = [*chain, delta] if self._whole is None else self._whole.send(chain, delta, f"{name}.whole")
            if native is not None:
                chain = [*native.write(checkpoint, self._storage, self._folder, native_part(base)), *chain]
            crash_point("slot-after-state-file")
            with self._lock:
                self._chains[checkpoint] = chain
        except OSError as error:
            self._tell({"type": "declined", "checkpoint": checkpoint, "nonce": nonce, "why": str(error)})
            return
        self._tell({"type": "durable", "checkpoint": checkpoint, "nonce": nonce, "files": chain})


def _add(writer: StateFileWriter, delta: Delta) -> None:
    """
    :raises SerializationError: something in it cannot be pickled.
    """
    try:
        writer.add(delta)
    except Exception as error:
        keys = (*delta.keys, *delta.deleted)
        raise unpicklable(delta.uid, delta.name, delta.kind, keys, delta.values, error) from error


def _by_group(operator: KeyedStore, name: str, kind: str, table: Table, checkpoint: int | None) -> list[Delta]:
    """
    :param checkpoint: the barrier that it is; None: not what changed, but all there is.
    """
    puts, deleted = (whole_scan(kind, table.scan()), []) if checkpoint is None else table.barrier(checkpoint)
    deltas = _Deltas(operator.uid, name, kind)
    groups = operator.store.key_groups
    group_of = groups.__getitem__ if table.grouped else _no_group
    if table.windowed:  # it would come to the same, by a longer way

        def group_of(key: Any) -> int:
            return groups[key[0]]

    for key, change in puts:
        delta = deltas[group_of(key)]
        delta.keys.append(key)
        delta.values.append(change)
    for key in deleted:
        deltas[group_of(key)].deleted.append(key)
    return sorted(deltas.values(), key=lambda delta: delta.group)


def _no_group(_: Any) -> int:
    return NO_GROUP


class _Deltas(dict[int, Delta]):
    """key group -> its delta, made when it is first asked for."""

    def __init__(self, uid: str, name: str, kind: str) -> None:
        super().__init__()
        self._state = uid, name, kind

    def __missing__(self, group: int) -> Delta:
        self[group] = delta = Delta(*self._state, group, [], [], [])
        return delta
