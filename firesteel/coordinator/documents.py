"""Small JSON files that a job's life depends on, with a first line that says what they are and whether they are whole.

    firesteel-<kind> <format> <xxh3-64 of the rest, hex>
    { ... }

They are never unpickled, and every flipped bit is noticed.
"""

from __future__ import annotations

import json
from typing import Any

from xxhash import xxh3_64_hexdigest

from firesteel.common.storage import Storage, reason
from firesteel.errors import RestoreError

NEWEST = 2


def encode_document(kind: str, content: Any, version: int = 1) -> bytes:
    body = json.dumps(content, indent=1).encode()
    return f"firesteel-{kind} {version} {xxh3_64_hexdigest(body)}\n".encode() + body


def read_document(storage: Storage, name: str, kind: str, advice: str) -> Any:
    """The content of a document.

    :param advice: what the user can do when it is damaged or gone.
    :raises RestoreError: missing, damaged, something else, or of a newer format.
    """
    path = storage.at(name)
    try:
        head, _, body = storage.read(name).partition(b"\n")
    except OSError as error:
        raise RestoreError(f"{path} cannot be read: {reason(error)}. {advice}") from error
    magic, _, rest = head.decode(errors="replace").partition(" ")
    version, _, checksum = rest.partition(" ")
    if magic != f"firesteel-{kind}" or not version.isdigit() or int(version) < 1:
        raise RestoreError(
            f"{path} is damaged, or no firesteel {kind} at all: its first line is {head[:80]!r}. {advice}"
        )
    if int(version) > NEWEST:
        raise RestoreError(
            f"{path} has format {version}, newer than {NEWEST}, the newest this firesteel reads; install the firesteel that "
            f"wrote it, or a later one"
        )
    if xxh3_64_hexdigest(body) != checksum:
        raise RestoreError(f"{path} is damaged: its checksum does not match. {advice}")
    return json.loads(body)
