"""Whether a job can start from where it is told to, before anything is started, claimed or written."""

from __future__ import annotations

from firesteel.coordinator.completed import locate
from firesteel.coordinator.importing import check_importable
from firesteel.coordinator.lineage import JobDirectory
from firesteel.errors import ConfigurationError, RestoreError
from firesteel.graph.settings import JobSettings


def check_start(settings: JobSettings) -> None:
    """Refuse a start from a checkpoint that is not there.

    :raises FiresteelError: with what is wrong about it.
    """
    start, checkpoints = settings.start, settings.checkpoints
    lasting = checkpoints.directory if checkpoints.enabled else None
    if start.restore_from is not None and start.must_resume:
        raise ConfigurationError(
            f"the job is to start from {start.restore_from} and to resume from its own newest checkpoint: it cannot do both"
        )
    if start.restore_from is not None:
        found = locate(start.restore_from)
        own = JobDirectory.find(lasting, settings.name) if lasting else None
        if own is None or not own.is_latest(found):
            check_importable(found, leave_output=start.allow_non_restored_state)
    if start.must_resume:
        if not lasting:
            missing = "checkpoint directory" if checkpoints.enabled else "checkpoint interval"
            raise ConfigurationError(
                f"job {settings.name!r} cannot resume: it has no {missing}, so there are no checkpoints of earlier runs. Set "
                f"execution.checkpointing.interval and execution.checkpointing.dir"
            )
        directory = JobDirectory.find(lasting, settings.name)
        if directory is None or directory.latest() is None:
            raise RestoreError(
                f"job {settings.name!r} cannot resume: it has no checkpoint in "
                f"{JobDirectory.storage_of(lasting, settings.name)}. Check its name and the directory, or start it "
                f"without --resume"
            )
