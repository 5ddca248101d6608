"""What a server says about a job's checkpoints, in Flink's fields."""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.coordinator.history import COMPLETED, FAILED, CheckpointRecord
from firesteel.rest.messages import Document
from firesteel.rest.served import ServedJob

_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def checkpoints(one: ServedJob) -> Document:
    history = one.job.history.checkpoints
    records = history.records()
    complete = [record for record in records if record.status == COMPLETED]
    failed, savepoint, restore = history.latest(FAILED), history.last_savepoint, history.last_restore
    return {
        "counts": history.counts(),
        "summary": {
            "checkpointed_size": _summary([record.written for record in complete]),
            "state_size": _summary([record.size for record in complete]),
            "end_to_end_duration": _summary([record.duration_ms or 0 for record in complete]),
        },
        "latest": {
            "completed": checkpoint(complete[-1]) if complete else None,
            "savepoint": checkpoint(savepoint) if savepoint else None,
            "failed": checkpoint(failed) if failed else None,
            "restored": restore
            and {
                "id": restore.checkpoint,
                "restore_timestamp": restore.time_ms,
                "is_savepoint": restore.savepoint,
                "external_path": restore.path,
            },
        },
        "history": [checkpoint(record) for record in reversed(records)],
    }


def checkpoint(record: CheckpointRecord) -> Document:
    done = record.status == COMPLETED
    found: Document = {
        "className": record.status.lower(),
        "id": record.checkpoint,
        "status": record.status,
        "is_savepoint": record.savepoint,
        "savepointFormat": "CANONICAL" if record.savepoint else None,
        "trigger_timestamp": record.triggered_ms,
        "latest_ack_timestamp": record.ended_ms if done else -1,
        "checkpointed_size": record.written,
        "state_size": record.size,
        "end_to_end_duration": -1 if record.duration_ms is None else record.duration_ms,
        "alignment_buffered": 0,  # nothing is in flight at a barrier
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": record.slots,
        "num_acknowledged_subtasks": record.slots if done else 0,
        "checkpoint_type": "SAVEPOINT" if record.savepoint else "CHECKPOINT",
        "tasks": {},
    }
    if done:
        found.update(external_path=record.path, discarded=False)
    elif record.status == FAILED:
        found.update(failure_timestamp=record.ended_ms, failure_message=record.why)
    return found


def checkpoint_config(one: ServedJob) -> Document:
    settings = one.settings.checkpoints
    in_memory = settings.directory is None and settings.max_state_size is not None
    return {
        "mode": settings.mode.lower(),
        "interval": settings.interval_ms or -1,
        "timeout": settings.timeout_ms,
        "min_pause": settings.min_pause_ms,
        "max_concurrent": 1,
        "externalization": {
            "enabled": settings.directory is not None,
            "delete_on_cancellation": settings.delete_on_cancellation,
        },
        "state_backend": "HashMapStateBackend" if one.settings.rocksdb is None else "EmbeddedRocksDBStateBackend",
        "checkpoint_storage": "JobManagerCheckpointStorage" if in_memory else "FileSystemCheckpointStorage",
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": -1 if settings.tolerable_failures is None else settings.tolerable_failures,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": True,
    }


def _summary(values: Sequence[int]) -> Document:
    """Of the checkpoints that are remembered."""
    ordered = sorted(values) or [0]
    found: Document = {"min": ordered[0], "max": ordered[-1], "avg": sum(ordered) // len(ordered)}
    quantiles = {name: float(ordered[round(part * (len(ordered) - 1))]) for name, part in _QUANTILES.items()}
    return {**found, **quantiles}
