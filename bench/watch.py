"""Running a Firesteel job under observation."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict

from firesteel.client import RunningJob, launch
from firesteel.common import Configuration
from firesteel.coordinator.engine import EpochResult
from firesteel.coordinator.progress import Progress
from firesteel.datastream import StreamExecutionEnvironment

PARALLELISM = 2
CHECKPOINT_MS = 1000


def environment(
    progress: bool = False,
    checkpoints: bool = True,
    directory: str | None = None,
    every_ms: int = CHECKPOINT_MS,
    backend: str = "hashmap",
) -> StreamExecutionEnvironment:
    """Two slots and a checkpoint every second, if nothing else is asked for. A failure ends the job: no figure hides one."""
    configuration = Configuration().set_string("restart-strategy.type", "none")
    configuration.set_string("firesteel.progress", str(progress).lower())
    configuration.set_string("state.backend.type", backend)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(PARALLELISM)
    if checkpoints:
        env.enable_checkpointing(every_ms)
        env.get_checkpoint_config().set_checkpoint_storage_dir(directory or tempfile.mkdtemp())
    return env


class Watch(Progress):
    """Runs a job to its end and keeps what happened on the way."""

    def __init__(self, env: StreamExecutionEnvironment, name: str) -> None:
        self.called = time.monotonic()
        self.ends: list[float] = []  # when each epoch ended
        self.seconds: list[float] = []  # how long its Spark job took
        self.reads: list[int] = []  # records read until then
        self.counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])  # uid -> in, out
        self.rss: dict[int, int] = {}
        self.restore_s = 0.0
        plan = env.plan()
        settings = env.settings(name)
        super().__init__(plan, name, settings.progress)
        self.run(launch(plan, settings, self))
        self.ended = time.monotonic()

    def run(self, client: RunningJob) -> None:
        """Until the job has ended."""
        client.get_job_execution_result().result()

    @property
    def first_epoch(self) -> float:
        """When the first epoch started."""
        return self.ends[0] - self.seconds[0]

    def warm_rate(self) -> float:
        """Records per second without the first epoch, which pays for starting up as a first micro-batch does."""
        return (self.reads[-1] - self.reads[0]) / (self.ended - self.ends[0])

    def cycles(self) -> list[float]:
        """Seconds from one epoch's end to the next one's: planning included."""
        return [after - before for before, after in zip(self.ends, self.ends[1:], strict=False)]

    def epoch(self, number: int, seconds: float, result: EpochResult, base: int | None, part: float | None) -> None:
        self.ends.append(time.monotonic())
        self.seconds.append(seconds)
        for report in result.reports:
            for uid, (received, made) in report["records"].items():
                self.counts[uid][0] += received
                self.counts[uid][1] += made
        super().epoch(number, seconds, result, base, part)
        self.reads.append(self.read())

    def restored(self, seconds: float) -> None:
        super().restored(seconds)
        self.restore_s = seconds

    def slot_memory(self, slot: int, rss: int) -> None:
        self.rss[slot] = max(rss, self.rss.get(slot, 0))
        super().slot_memory(slot, rss)
