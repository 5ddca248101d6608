"""What a server says about a job, in Flink's fields."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from firesteel.common.job_status import JobStatus
from firesteel.coordinator.history import COMPLETED
from firesteel.graph.nodes import Partitioning
from firesteel.graph.plan import PlannedOperator
from firesteel.rest.messages import Document
from firesteel.rest.served import ServedJob

_TASK_STATES = (
    "CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING",
    "INITIALIZING",
)  # fmt: skip
_TASK_STATE_OF = {
    JobStatus.CREATED: "CREATED",
    JobStatus.RUNNING: "RUNNING",
    JobStatus.RESTARTING: "SCHEDULED",
    JobStatus.CANCELLING: "CANCELING",
    JobStatus.CANCELED: "CANCELED",
    JobStatus.FINISHED: "FINISHED",
}
"""All subtasks of a job are always in the same state; any other one is FAILED."""


def overview(one: ServedJob) -> Document:
    """A job as one of many."""
    history = one.job.history
    subtasks = sum(operator.parallelism for operator in one.plan.operators)
    return {
        "jid": one.id,
        "name": one.settings.name,
        **_times(one),
        "state": history.status.name,
        "last-modification": max(history.since.values()),
        "tasks": {"total": subtasks, **{name.lower(): count for name, count in _states(one, subtasks).items()}},
        "job-type": "STREAMING",
    }


def details(one: ServedJob) -> Document:
    history = one.job.history
    taken, made, _ = one.progress.counts()
    return {
        "jid": one.id,
        "name": one.settings.name,
        "isStoppable": True,
        "state": history.status.name,
        "job-type": "STREAMING",
        **_times(one),
        "maxParallelism": max(operator.max_parallelism for operator in one.plan.operators),
        "now": _now(),
        "timestamps": {status.name: history.since.get(status, 0) for status in JobStatus},
        "vertices": [_vertex(one, each, taken, made) for each in one.plan.operators],
        "status-counts": _states(one, len(one.plan.operators)),
        "plan": plan(one),
    }


def _vertex(one: ServedJob, each: PlannedOperator, taken: Mapping[str, int], made: Mapping[str, int]) -> Document:
    return {
        "id": each.uid,
        "name": each.name,
        "maxParallelism": each.max_parallelism,
        "parallelism": each.parallelism,
        "status": _task_state(one),
        **_times(one),
        "tasks": _states(one, each.parallelism),
        "metrics": {
            "read-records": taken.get(each.uid, 0),
            "read-records-complete": True,
            "write-records": made.get(each.uid, 0),
            "write-records-complete": True,
        },
    }


def plan(one: ServedJob) -> Document:
    """The graph. An operator is a vertex of its own, whether or not others call it directly."""
    uids = {each.id: each.uid for each in one.plan.operators}
    nodes = [
        {
            "id": each.uid,
            "parallelism": each.parallelism,
            "operator": each.kind,
            "operator_strategy": "",
            "description": each.description or each.name,
            "inputs": [
                {
                    "num": number,
                    "id": uids[edge.upstream],
                    "ship_strategy": "HASH" if edge.partitioning is Partitioning.KEY else edge.partitioning.name,
                    "exchange": "chained" if edge.direct else "pipelined_bounded",
                }
                for number, edge in enumerate(each.inputs)
            ],
            "optimizer_properties": {},
        }
        for each in one.plan.operators
    ]
    return {"jid": one.id, "name": one.settings.name, "type": "STREAMING", "nodes": nodes}


def config(one: ServedJob) -> Document:
    return {
        "jid": one.id,
        "name": one.settings.name,
        "execution-config": {
            "restart-strategy": one.settings.restart.get_description(),
            "job-parallelism": one.plan.slots,
            "object-reuse-mode": any(each.object_reuse for each in one.plan.operators),
            "user-config": dict(one.settings.parameters),
        },
    }


def exceptions(one: ServedJob, most: int) -> Document:
    """The last failures, the latest first."""
    history = one.job.history
    entries: list[Document] = [
        {
            "exceptionName": failure.name,
            "stacktrace": failure.text,
            "timestamp": failure.time_ms,
            "failureLabels": {},
            "concurrentExceptions": [],
        }
        for failure in reversed(history.failures)
    ]
    return {"exceptionHistory": {"entries": entries[:most], "truncated": history.failed > len(entries[:most])}}


def metrics(one: ServedJob) -> dict[str, Any]:
    """By name: Flink's of a job, and with the operator's uid before them those of operators and of the user's functions."""
    history, now = one.job.history, _now()
    running = history.status is JobStatus.RUNNING
    counts, latest = history.checkpoints.counts(), history.checkpoints.latest(COMPLETED)
    found: dict[str, Any] = {
        "uptime": now - history.since[JobStatus.RUNNING] if running else 0,
        "downtime": 0 if running or history.ended_ms is not None else now - max(history.since.values()),
        "numRestarts": max(0, history.failed - (history.status is JobStatus.FAILED)),
        "totalNumberOfCheckpoints": counts["total"],
        "numberOfCompletedCheckpoints": counts["completed"],
        "numberOfFailedCheckpoints": counts["failed"],
        "numberOfInProgressCheckpoints": counts["in_progress"],
        "lastCompletedCheckpointId": latest.checkpoint if latest else -1,
        "lastCheckpointDuration": latest.duration_ms if latest else -1,
        "lastCheckpointSize": latest.written if latest else -1,
        "lastCheckpointFullSize": latest.size if latest else -1,
        "lastCheckpointExternalPath": (latest.path if latest else None) or "n/a",
        "slotsMemory": sum(one.progress.slots_rss.copy().values()),
    }
    taken, made, rates = one.progress.counts()
    for each in one.plan.operators:
        found[f"{each.uid}.numRecordsIn"] = taken.get(each.uid, 0)
        found[f"{each.uid}.numRecordsOut"] = made.get(each.uid, 0)
        found[f"{each.uid}.numRecordsOutPerSecond"] = round(rates.get(each.uid, 0.0), 3)
    for uid, values in one.job.metrics.items():
        for name, value in values.items():
            parts = (
                {f".{part}": number for part, number in value.items()} if isinstance(value, Mapping) else {"": value}
            )
            found.update({f"{uid}.{name}{part}": number for part, number in parts.items()})
    return found


def _times(one: ServedJob) -> Document:
    history = one.job.history
    end = history.ended_ms
    return {
        "start-time": history.started_ms,
        "end-time": -1 if end is None else end,
        "duration": (_now() if end is None else end) - history.started_ms,
    }


def _task_state(one: ServedJob) -> str:
    return _TASK_STATE_OF.get(one.job.status, "FAILED")


def _states(one: ServedJob, tasks: int) -> dict[str, int]:
    counted = Counter({_task_state(one): tasks})
    return {state: counted[state] for state in _TASK_STATES}


def _now() -> int:
    return int(time.time() * 1000)
