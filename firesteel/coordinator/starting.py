"""Whether a job can start from where it is told to, before anything is started, claimed or written."""

from __future__ import annotations

from collections.abc import Collection

from firesteel.coordinator.checkpointing import check_fits
from firesteel.coordinator.claiming import check_claimable
from firesteel.coordinator.completed import Completed, locate
from firesteel.coordinator.importing import check_importable
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.rescaling import with_key_groups_of
from firesteel.errors import ConfigurationError, RestoreError
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings


def check_start(plan: JobPlan, settings: JobSettings) -> JobPlan:
    """Refuse a start from a checkpoint that is not there, or that is not the program's.

    Gives the plan that fits it, with the checkpoint's key groups.

    :raises FiresteelError: with what is wrong about it.
    """
    start, checkpoints = settings.start, settings.checkpoints
    lasting = checkpoints.directory if checkpoints.enabled else None
    own = JobDirectory.find(lasting, settings.name) if lasting else None
    if start.restore_from is not None and start.must_resume:
        raise ConfigurationError(
            f"the job is to start from {start.restore_from} and to resume from its own newest checkpoint: it cannot do both"
        )
    if start.restore_from is not None:
        found = locate(start.restore_from)
        if own is None or not own.is_latest(found):
            check_importable(found, leave_output=start.allow_non_restored_state)
        check_fits(found, plan, start.allow_non_restored_state)
        if start.claim:
            if not lasting:
                raise ConfigurationError(
                    f"job {settings.name!r} cannot claim {found.path}: it has no checkpoints that last, so that nothing could "
                    f"take its place. Set execution.checkpointing.interval and execution.checkpointing.dir, or start without a "
                    f"claim (NO_CLAIM)"
                )
            check_claimable(found, own, settings.name)
        return with_key_groups_of(found.metadata, plan)
    newest = _newest(own) if own is not None else None
    if start.must_resume:
        if not lasting:
            missing = "checkpoint directory" if checkpoints.enabled else "checkpoint interval"
            raise ConfigurationError(
                f"job {settings.name!r} cannot resume: it has no {missing}, so there are no checkpoints of earlier runs. Set "
                f"execution.checkpointing.interval and execution.checkpointing.dir"
            )
        if newest is None:
            raise RestoreError(
                f"job {settings.name!r} cannot resume: it has no checkpoint in "
                f"{JobDirectory.storage_of(lasting, settings.name)}. Check its name and the directory, or start it "
                f"without --resume"
            )
    if newest is None:
        return plan
    check_fits(newest, plan, start.allow_non_restored_state)
    if not newest.confirmed and not start.allow_non_restored_state:
        check_output(newest, {operator.uid for operator in plan.operators})
    return with_key_groups_of(newest.metadata, plan)


def check_output(start: Completed, sinks: Collection[str]) -> None:
    """
    :raises RestoreError: there is output to commit of sinks that are not among these.
    """
    gone = [uid for uid, items in start.metadata.committables.items() if items and uid not in sinks]
    if gone:
        raise RestoreError(
            f"checkpoint {start.path} holds output of the sinks {', '.join(gone)} that is not committed yet, and the program "
            f"does not have them any more: it would be lost. Run the program with them once more, or give it up with "
            f"--allow-non-restored-state"
        )


def _newest(directory: JobDirectory) -> Completed | None:
    """A driver that is about to be replaced may drop a checkpoint while it is read; then there is a newer one."""
    while True:
        number = directory.newest_number()
        try:
            return directory.latest()
        except RestoreError:
            if directory.newest_number() == number:
                raise
