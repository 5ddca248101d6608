"""Where a description becomes a running job, or whatever somebody wants of it instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from firesteel.common.job_client import JobClient
from firesteel.graph.plan import JobPlan
from firesteel.graph.settings import JobSettings

Planned = Callable[[JobPlan, JobSettings], NoReturn]

_instead: Planned | None = None


@contextmanager
def instead_of_running(planned: Planned) -> Iterator[None]:
    """Jobs are not started: `planned` gets them, and ends the program by raising."""
    global _instead
    _instead = planned
    try:
        yield
    finally:
        _instead = None


def launch(plan: JobPlan, settings: JobSettings) -> JobClient:
    """Start a job."""
    if _instead is not None:
        _instead(plan, settings)
    from firesteel.client import launch

    return launch(plan, settings)
