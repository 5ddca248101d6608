"""A chaos run: a plan is carried out, two jobs at a time, and the oracle looks after every fault."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firesteel.testing.killer import Family
from tests.chaos.inject import Injector
from tests.chaos.life import JOB, KEYS, REPOSITORY, Life
from tests.chaos.plan import EACH_POINT, LONG_RUN, OUTAGES, POINTS, ROCKSDB, SERVED, PlannedLife, plan
from tests.chaos.served_life import ServedLife
from tests.chaos.servers import Servers
from tests.faults.jvm import java_options

TIMEOUT_MS = 1500
LANES = 2
MANY_KEYS = 211


@dataclass
class Result:
    """What became of a run."""

    seed: int
    planned: int
    faults: int = 0
    survived: int = 0
    rollbacks: int = 0
    violations: list[str] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)
    rollbacks_by_kind: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def line(self) -> str:
        return f"faults {self.faults} survived {self.survived} violations {len(self.violations)} seed {self.seed}"

    def good(self) -> bool:
        return not self.violations and self.faults == self.survived == self.planned and not self.rare_points()

    def rare_points(self) -> list[str]:
        """Crash points that a long run should have hit more often: then it shows less than it seems to."""
        wanted = [*POINTS, "slot-restore", "durable-file-empty"] if self.planned >= LONG_RUN else []
        return [point for point in wanted if self.points[point] < EACH_POINT]


class Run:
    """Carries out one plan."""

    def __init__(self, seed: int, faults: int, say: Callable[[str], None] = print, lanes: int = LANES) -> None:
        self.result = Result(seed, faults)
        self._lives = plan(seed, faults)
        self._say, self._lanes = say, lanes
        self._home = Path(tempfile.mkdtemp(prefix="fschaos-run-", dir="/tmp"))
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._running: list[Life] = []
        self._futures: list[Future[None]] = []
        self._copies: list[tuple[str, Life, Path, list[str]]] = []

    def run(self) -> Result:
        try:
            java_options()  # may take a while, and no fault should wait for it
            with contextlib.closing(Servers()) as servers:
                self._live_all(servers)
                self._restore_copies()
        finally:
            if self.result.violations:
                self._say(f"what is left of it is in {self._home}")
            else:
                shutil.rmtree(self._home, ignore_errors=True)
        self.result.seconds = time.monotonic() - self._started
        return self.result

    def _live_all(self, servers: Servers) -> None:
        longest_first = sorted(enumerate(self._lives, 1), key=lambda item: -len(item[1].faults))
        with ThreadPoolExecutor(self._lanes) as lanes:
            self._futures = [lanes.submit(self._live, servers, *item) for item in longest_first]
            try:
                for future in self._futures:
                    future.result()
            except BaseException:  # Ctrl-C: end what runs, and start nothing more
                self._stop()
                raise

    def _stop(self) -> None:
        for future in self._futures:
            future.cancel()
        with self._lock:
            lives = list(self._running)
        for life in lives:
            life.close()

    def _live(self, servers: Servers, number: int, planned: PlannedLife) -> None:
        name = f"job {number} ({planned.kind})"
        doing, life, injector = "its start", None, None
        try:
            with servers.calm():
                life = self._make(servers, number, planned)
                injector = Injector(life, random.Random(f"{self.result.seed}-{number}"))
                life.start()
                life.wait_checkpoint()
            for fault in planned.faults:
                doing = f"{fault.first}, {fault.kind}" if fault.first else fault.kind
                with servers.storm() if fault.kind in OUTAGES else servers.calm():
                    began = time.monotonic()
                    with self._lock:
                        self.result.faults += 1
                    rollbacks = injector.inject(fault)
                    life.check_so_far()
                self._survived(name, doing, fault.kind, rollbacks, time.monotonic() - began)
            doing = "its end"
            with servers.calm():
                life.finish()
                life.check_end()
                home = self._home / f"copy-{number}"
                with self._lock:
                    self._copies.append((name, life, home, life.copy_to(home)))
        except Exception as error:  # noqa: BLE001  whatever it is, it is a violation
            self._violated(f"{name}, {doing}, home {self._home / f'job-{number}'}: {_text(error)}")
        finally:
            if life is not None:
                life.close()
            if injector is not None:
                with self._lock:
                    self.result.points += injector.fired

    def _make(self, servers: Servers, number: int, planned: PlannedLife) -> Life:
        home = self._home / f"job-{number}"
        options: dict[str, Any] = {"timeout": TIMEOUT_MS, "tolerable": planned.tolerable, "retained": planned.retained}
        options |= {"backends": planned.backends, "keys": MANY_KEYS if planned.kind in ROCKSDB else KEYS}
        if planned.kind in SERVED:
            life: Life = ServedLife(home, planned.kind, servers, f"chaos-{number}", **options)
        else:
            life = Life(home, planned.kind, **options)
        with self._lock:
            self._running.append(life)
        return life

    def _survived(self, name: str, doing: str, kind: str, rollbacks: int, seconds: float) -> None:
        with self._lock:
            result = self.result
            result.survived += 1
            result.rollbacks += rollbacks
            result.by_kind[kind] += 1
            result.rollbacks_by_kind[kind] += rollbacks
            elapsed = time.monotonic() - self._started
            self._say(
                f"[{elapsed:6.1f} s] {result.survived:3}/{result.planned} {name}: {doing}, "
                f"{rollbacks} rollback{'s' * (rollbacks != 1)}, {seconds:.1f} s"
            )

    def _violated(self, text: str) -> None:
        with self._lock:
            self.result.violations.append(text)
            self._say(f"VIOLATION {text}")

    def _restore_copies(self) -> None:
        """The last checkpoint of every job, from a copy of its directory, all on one Spark."""
        if not self._copies:
            return
        self._say(f"{len(self._copies)} jobs go on from copies of their checkpoint directories")
        tmp = Path(tempfile.mkdtemp(prefix="fschaos-", dir="/tmp"))
        starter = subprocess.Popen(
            [sys.executable, str(JOB), "--many"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp), "JAVA_TOOL_OPTIONS": java_options()},
            start_new_session=True,
        )
        family = Family(starter)
        try:
            orders = json.dumps([command for _, _, _, command in self._copies])
            answer, complaint = starter.communicate(orders.encode(), timeout=300)
            outcomes = (
                json.loads(answer) if starter.returncode == 0 else [complaint.decode()[-2000:]] * len(self._copies)
            )
            for (name, life, home, _), problem in zip(self._copies, outcomes, strict=True):
                try:
                    if problem is not None:
                        raise AssertionError(problem)
                    life.check_copy(home)
                except Exception as error:  # noqa: BLE001  whatever it is, it is a violation
                    self._violated(f"{name}, from a copy in {home}: {_text(error)}")
        finally:
            family.end()
            shutil.rmtree(tmp, ignore_errors=True)


def _text(error: Exception) -> str:
    if isinstance(error, AssertionError):
        return str(error) or "".join(traceback.format_exception(error))
    return "".join(traceback.format_exception(error))
