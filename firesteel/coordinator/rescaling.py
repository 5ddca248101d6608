"""Going on from a checkpoint with another parallelism than it was taken with.

Keyed state moves with its key groups, which are the same ones as before: only who owns them changes. Subtask k of an
operator goes on with the chains of all old subtasks i that had some of its groups, and of their files it takes the groups
that were i's and are k's now. The handles in its chain say so (state/parts.py), and so do those in every checkpoint it takes,
until it has compacted them. An older owner's file may be in many chains by then, and only in that of a group's owner the
changes that came later follow it: what a handle's part leaves out is never read from that chain again.

Nothing is copied or rewritten. Every group was owned by exactly one old subtask and is by exactly one new one, so all of
it is read by somebody and nothing by two, however many slots come or go. State of subtasks, which has no key groups, is
divided by rules of its own (origin.py).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from firesteel.coordinator.engine import FileHandle
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.graph.keys import groups_of, subtask_of
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.state.parts import Part, restricted, shared_groups


def rescaled_operators(metadata: CheckpointMetadata, plan: JobPlan) -> dict[str, int]:
    """The operators that had another parallelism when the checkpoint was taken: uid -> the one they had."""
    before = metadata.operators
    return {
        operator.uid: before[operator.uid].parallelism
        for operator in plan.operators
        if operator.uid in before and before[operator.uid].parallelism != operator.parallelism
    }


def chains_of(metadata: CheckpointMetadata, plan: JobPlan) -> dict[int, list[FileHandle]]:
    """The state files that each slot starts with, oldest first among those of one old slot."""
    if not rescaled_operators(metadata, plan):
        return {slot: list(chain) for slot, chain in enumerate(metadata.state)}
    chains: dict[int, list[FileHandle]] = {slot: [] for slot in range(plan.slots)}
    for (before, now), part in sorted(_passed_on(metadata, plan).items()):
        handles = [restricted(handle, part) for handle in metadata.state[before]]
        chains[now] += [handle for handle in handles if handle is not None]
    return chains


def _passed_on(metadata: CheckpointMetadata, plan: JobPlan) -> dict[tuple[int, int], Part]:
    """What the subtasks in a slot of the checkpoint pass on to those in a slot of the program, for pairs of these."""
    groups: defaultdict[tuple[int, int], dict[str, range]] = defaultdict(dict)
    subtasks: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for operator in plan.operators:
        info = metadata.operators.get(operator.uid)
        if info is None:
            continue
        for now in range(operator.parallelism):
            if info.keyed:
                mine = groups_of(now, operator.parallelism, operator.max_parallelism)
                owners = [subtask_of(group, info.parallelism, info.max_parallelism) for group in (mine[0], mine[-1])]
                for before in range(owners[0], owners[1] + 1):
                    theirs = groups_of(before, info.parallelism, info.max_parallelism)
                    groups[before, now][operator.uid] = shared_groups(mine, theirs)
            if info.parallelism == operator.parallelism:
                subtasks[now, now].append(operator.uid)
    return {pair: Part(groups[pair], subtasks[pair]) for pair in {*groups, *subtasks}}


def with_key_groups_of(metadata: CheckpointMetadata, plan: JobPlan) -> JobPlan:
    """The plan with as many key groups as the checkpoint has, wherever the program does not say how many.

    What is not said follows from the parallelism, so it may have changed with that; the state has not.
    """

    def fitting(operator: PlannedOperator) -> PlannedOperator:
        info = metadata.operators.get(operator.uid)
        if info is None or not info.keyed or operator.max_parallelism_given:
            return operator
        return replace(operator, max_parallelism=info.max_parallelism)

    return JobPlan(tuple(map(fitting, plan.operators)))
