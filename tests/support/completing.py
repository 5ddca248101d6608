"""Checkpoints of a job that never ran."""

from __future__ import annotations

from firesteel.coordinator.lineage import Incarnation
from firesteel.coordinator.metadata import CheckpointMetadata


def some_metadata(incarnation: Incarnation, number: int, files: tuple[str, ...] = ()) -> CheckpointMetadata:
    """Of a checkpoint with output to commit, and state files that are made if they are not there."""
    storage = incarnation.directory.storage
    for file in files:
        if not storage.exists(file):
            storage.write(file, b"state")
    return CheckpointMetadata(
        job_id=incarnation.directory.job_id,
        job_name="job",
        checkpoint=number,
        incarnation=incarnation.number,
        created_ms=0,
        final=False,
        operators={},
        positions={"source": {"at": number}},
        state=[[{"file": file, "size": 5, "checksum": "0"} for file in files]],
        committables={"sink": [{"final": f"part-{number}"}]},
    )
