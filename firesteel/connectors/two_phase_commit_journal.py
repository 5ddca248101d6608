"""Which transactions have begun: one small file each, from before its first record to after its commit or abort.

`txn-<incarnation>-<subtask>-<sequence>.json` holds the transaction's handle. It is written by the slot and synced before
the handle is used, and deleted by whoever resolves the transaction. What a killed slot or driver had open is therefore
always found by the next incarnation, with no need to ask the other system what it has. docs/formats.md has the layout.
"""

from __future__ import annotations

import base64
import json
import logging
import math
import pickle
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.base import CommitterContext, Json, WriterContext
from firesteel.connectors.sink_directory import sink_storage
from firesteel.errors import CheckpointError

log = logging.getLogger("firesteel")

_NAME = re.compile(r"txn-(\d+)-(\d+)-(\d+)\.json")


@dataclass(frozen=True)
class Begun:
    """A transaction of the journal."""

    name: str
    incarnation: int
    handle: Json


class Journal:
    """The notes of one sink."""

    def __init__(self, context: WriterContext | CommitterContext) -> None:
        self._storage = sink_storage(context)

    def name(self, incarnation: int, subtask: int, sequence: int) -> str:
        return f"txn-{incarnation}-{subtask}-{sequence}.json"

    def taken(self, name: str) -> bool:
        return self._storage.exists(name)

    def add(self, name: str, handle: Json) -> None:
        """Durable when this returns."""
        self._storage.write(name, json.dumps({"handle": handle}).encode())

    def remove(self, *names: str) -> None:
        """Durable too: a note that came back after a power cut would abort what is committed."""
        for name in names:
            self._storage.delete(name)
        if names:
            self._storage.sync()

    def begun(self) -> Iterator[Begun]:
        """Whatever is not resolved yet."""
        for name in sorted(self._storage.names()):
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            try:
                handle = json.loads(self._storage.read(name))["handle"]
            except FileNotFoundError:
                continue  # resolved meanwhile
            except (ValueError, KeyError, TypeError):
                # half written, so the slot died before it used the transaction
                log.warning("the note of a transaction, %s, is not complete and is ignored", name)
                handle = None
            yield Begun(name, int(match[1]), handle)


def encode_handle(handle: Any, where: str) -> Json:
    """A handle as JSON: as it is if it is a JSON value, else pickled.

    :raises CheckpointError: it can be neither.
    """
    if _is_json(handle):
        return {"json": handle}
    try:
        return {"pickle": base64.b64encode(pickle.dumps(handle)).decode()}
    except Exception as error:
        raise CheckpointError(
            f"{where}: the transaction handle {handle!r:.200} cannot be pickled ({error}), so the driver could not commit it. "
            f"Return a JSON value, or leave out in its __getstate__ what cannot leave the slot"
        ) from error


def decode_handle(encoded: Json) -> Any:
    return encoded["json"] if "json" in encoded else pickle.loads(base64.b64decode(encoded["pickle"]))


def _is_json(value: Any) -> bool:
    """Whether it comes back from JSON as what it was: of exactly these types, not of their subclasses."""
    kind = type(value)
    if kind is list:
        return all(map(_is_json, value))
    if kind is dict:
        return all(type(key) is str for key in value) and all(map(_is_json, value.values()))
    return value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value))
