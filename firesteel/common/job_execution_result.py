"""What is left of a job when it has finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.job_id import JobID

__all__ = ["JobExecutionResult"]


@dataclass(frozen=True)
class JobExecutionResult:
    """A finished job: its identity, how many milliseconds it ran, and its accumulators."""

    job_id: JobID
    net_runtime_ms: int
    accumulators: Mapping[str, Any] = field(default_factory=dict)

    def get_job_id(self) -> JobID:
        return self.job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the first epoch to the end."""
        return self.net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The accumulator's value; None if there is no such accumulator."""
        return self.accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        return dict(self.accumulators)

    def is_job_execution_result(self) -> bool:
        """True: the job was run to its end, not only submitted."""
        return True

    def __str__(self) -> str:
        lines = [
            "Program execution finished",
            f"Job with JobID {self.job_id} has finished.",
            f"Job Runtime: {self.net_runtime_ms} ms",
        ]
        if self.accumulators:
            lines.append("Accumulator Results:")
            lines += [f"- {name}: {value}" for name, value in self.accumulators.items()]
        return "\n".join(lines)
