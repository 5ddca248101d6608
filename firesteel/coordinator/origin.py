"""The checkpoint that a job goes on from, as its slots see it."""

from __future__ import annotations

from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.rescaling import rescaled_operators
from firesteel.graph.plan import JobPlan
from firesteel.state.origin import FileHandle, Origin
from firesteel.state.redistribution import needs_others


def origin_of(metadata: CheckpointMetadata, plan: JobPlan) -> Origin:
    """With the files that slots need besides their own: other subtasks' operator state, of operators whose parallelism
    changed and of those with union list state."""
    rescaled = rescaled_operators(metadata, plan)

    def shared(handle: FileHandle) -> bool:
        found: dict[str, list[str]] = handle.get("operator_state", {})
        return any(needs_others(kind, rescaled=uid in rescaled) for uid, kinds in found.items() for kind in kinds)

    chains = [[handle for handle in chain if shared(handle)] for chain in metadata.state]
    return Origin(metadata.checkpoint, rescaled, chains if any(chains) else ())
