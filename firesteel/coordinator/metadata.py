"""What a completed checkpoint is: one small file that says where everything is.

`_metadata` is a document of kind `checkpoint` (see documents.py). docs/formats.md describes its fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from firesteel.common.storage import Storage
from firesteel.connectors.base import Json
from firesteel.coordinator.documents import encode_document, read_document
from firesteel.coordinator.engine import FileHandle
from firesteel.state.parts import PART

METADATA = "_metadata"


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
    given_up: Sequence[str] = field(default_factory=list)  # uids of operators whose state was left out on restoring
    savepoint: bool = False  # it is one, and its state files are beside it
    job_directory: str = ""  # of a savepoint: where its job has its checkpoints
    claimed: str = ""  # the savepoint that this is a copy of, which goes when this goes

    def files(self) -> set[str]:
        return {handle["file"] for chain in self.state for handle in chain}

    def operator_state(self) -> set[str]:
        """The uids of operators that have operator state."""
        return {uid for chain in self.state for handle in chain for uid in handle.get("operator_state", ())}

    def size(self) -> int:
        return sum({handle["file"]: handle["size"] for chain in self.state for handle in chain}.values())


def encode(metadata: CheckpointMetadata) -> bytes:
    """With parts of files in it, it has format 2: whoever does not know of parts would read too much."""
    parts = any(PART in handle for chain in metadata.state for handle in chain)
    return encode_document("checkpoint", asdict(metadata), 2 if parts else 1)


def read(storage: Storage, folder: str) -> CheckpointMetadata:
    """The metadata of the checkpoint in that folder.

    :raises RestoreError: missing, damaged, or of a newer format.
    """
    advice = "Restore the checkpoint from a copy, or use another one"
    content = read_document(storage, f"{folder}/{METADATA}" if folder else METADATA, "checkpoint", advice)
    content["operators"] = {uid: OperatorInfo(**info) for uid, info in content["operators"].items()}
    return CheckpointMetadata(**content)
