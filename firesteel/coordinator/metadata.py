"""What a completed checkpoint is: one small file that says where everything is.

`_metadata` is a line `firesteel-checkpoint <format> <xxh3-64 of the rest, hex>` and a JSON document behind it. It is never
unpickled. docs/formats.md describes its fields.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xxhash import xxh3_64_hexdigest

from firesteel.connectors.base import Json
from firesteel.coordinator.engine import FileHandle
from firesteel.errors import RestoreError

FORMAT = 1
METADATA = "_metadata"
_MAGIC = "firesteel-checkpoint"


@dataclass(frozen=True)
class OperatorInfo:
    """What restoring needs to know about an operator."""

    name: str
    kind: str
    parallelism: int
    max_parallelism: int
    keyed: bool


@dataclass(frozen=True)
class CheckpointMetadata:
    """A completed checkpoint."""

    job_id: str
    job_name: str
    checkpoint: int
    incarnation: int
    created_ms: int
    final: bool
    operators: Mapping[str, OperatorInfo]
    positions: Mapping[str, Json]  # source uid -> where it goes on
    state: Sequence[Sequence[FileHandle]]  # for each slot its state files, oldest first
    committables: Mapping[str, Sequence[Json]]  # sink uid -> not yet confirmed, whichever checkpoint made them
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def files(self) -> set[str]:
        return {handle["file"] for chain in self.state for handle in chain}

    def size(self) -> int:
        return sum({handle["file"]: handle["size"] for chain in self.state for handle in chain}.values())


def encode(metadata: CheckpointMetadata) -> bytes:
    body = json.dumps(asdict(metadata), indent=1).encode()
    return f"{_MAGIC} {FORMAT} {xxh3_64_hexdigest(body)}\n".encode() + body


def read(path: str) -> CheckpointMetadata:
    """A checkpoint's metadata; `path` is its directory or its `_metadata` file.

    :raises RestoreError: missing, damaged, or of a newer format.
    """
    if os.path.isdir(path):
        path = os.path.join(path, METADATA)
    try:
        with open(path, "rb") as file:
            head, _, body = file.read().partition(b"\n")
    except OSError as error:
        raise RestoreError(f"checkpoint {path} cannot be read: {error.strerror}") from error
    fields = head.decode(errors="replace").split(" ")
    if len(fields) != 3 or fields[0] != _MAGIC or not fields[1].isdigit():
        raise RestoreError(f"{path} is not checkpoint metadata, or its first line is damaged")
    if int(fields[1]) > FORMAT:
        raise RestoreError(
            f"checkpoint {path} has format {fields[1]}, newer than {FORMAT}, the newest this firesteel reads; install the "
            f"firesteel that wrote it, or a later one"
        )
    if xxh3_64_hexdigest(body) != fields[2]:
        raise RestoreError(
            f"checkpoint {path} is damaged: its checksum does not match. Restore it from a copy or use another"
        )
    content = json.loads(body)
    content["operators"] = {uid: OperatorInfo(**info) for uid, info in content["operators"].items()}
    return CheckpointMetadata(**content)
