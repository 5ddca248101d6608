"""State that is in the driver's memory: on its way to slots it is inside the handles of its files."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

from firesteel.common.storage import MemoryStorage, Storage
from firesteel.coordinator.engine import FileHandle, SlotMessage
from firesteel.state.origin import Origin


def limit_of(storage: Storage) -> int | None:
    """How much state a slot may have; None: it writes files by itself, and any number."""
    return storage.limit if isinstance(storage, MemoryStorage) else None


def carrying(storage: Storage, chain: Sequence[FileHandle]) -> list[FileHandle]:
    """The handles as slots need them."""
    if not isinstance(storage, MemoryStorage):
        return list(chain)
    return [{**handle, "data": base64.b64encode(storage.read(handle["file"])).decode()} for handle in chain]


def carrying_origin(storage: Storage, origin: Origin) -> Origin:
    return replace(origin, chains=[carrying(storage, chain) for chain in origin.chains] if origin.chains else ())


def keep(storage: Storage, message: SlotMessage) -> None:
    """A slot sent its state, which it will acknowledge next."""
    storage.replace(message["file"], base64.b64decode(message["data"]))
