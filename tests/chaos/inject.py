"""How each fault of a plan is made to happen, and how the job gets over it. Every one of them ends with a rollback, except
for outages of servers, which a job may sit out.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path

from firesteel.testing.faults import flip_bit
from tests.chaos import oracle
from tests.chaos.life import Driver, Life
from tests.chaos.oracle import ViolationError
from tests.chaos.plan import COMMITTING, DRIVER_POINTS, OUTAGES, POINTS, SLOT_POINTS, Fault
from tests.chaos.served_life import ServedLife

HOUR = 3600


class Injector:
    """Does one fault after the other to one job."""

    def __init__(self, life: Life, chance: random.Random) -> None:
        self._life, self._chance = life, chance
        self.fired: Counter[str] = Counter()  # crash points that somebody died at

    def inject(self, fault: Fault) -> int:
        """Make it happen, and wait until the job has a new checkpoint. Gives the number of rollbacks and recoveries."""
        life = self._life
        if life.driver.ended() is not None:
            life.start()
        before = life.incarnation()
        life.recover(before - 1)
        self._do(fault, before)
        life.points.disarm()
        after = life.incarnation()
        if after <= before and fault.kind not in OUTAGES:
            raise ViolationError(f"{fault} did not cause a rollback: incarnation {after} as before")
        return after - before

    def _do(self, fault: Fault, before: int) -> None:
        kind = fault.kind
        if kind in OUTAGES:
            self._outage(fault)
            return
        if fault.first:
            self._crash(fault.first, fault.count)
            if kind in SLOT_POINTS:
                self._await_rollback(before)  # else two slots of one incarnation might die, and it is one rollback
            self._crash(kind)
            before = self._second_incarnation(before)
        elif kind in DRIVER_POINTS or kind in SLOT_POINTS:
            self._crash(kind, fault.count)
        elif kind in POINTS:
            self._crash_in_recovery(kind, fault.amount)
        else:
            getattr(self, "_" + kind.replace("-", "_"))(fault)
        self._life.recover(before)

    def _second_incarnation(self, before: int) -> int:
        """The one of the second crash of two, which may have made a checkpoint before that."""
        if self._life.points.fired() == self._life.driver.process.pid:
            self._await_death()
            return self._life.incarnation()
        return before + 1  # a slot's, and its driver may have restarted already

    # ---- crash points

    def _crash(self, point: str, count: int = 1, action: str = "kill") -> None:
        self._life.points.arm(point, count, action)
        self._await_fired(point)

    def _await_fired(self, point: str) -> None:
        """Whoever was killed before may have to be started again to get there."""
        life = self._life

        def fired() -> int | None:
            pid = life.points.fired()
            if pid is None:
                life.restart_if_killed()
            return pid

        life.wait(fired, f"somebody to get to {point}")
        self.fired[point] += 1

    def _await_rollback(self, before: int) -> None:
        life = self._life

        def rolled_back() -> bool:
            life.restart_if_killed()
            return life.incarnation() > before

        life.wait(rolled_back, f"an incarnation above {before}")

    def _await_death(self) -> None:
        self._life.wait(lambda: self._life.driver.ended() is not None, "the driver's death")

    def _crash_in_recovery(self, point: str, amount: int) -> None:
        self._life.points.arm(point)
        if amount < 80:
            self._kill("slot")
        else:
            self._kill("driver")
            self._await_death()
            self._life.start()
        self._await_fired(point)

    def _slot_restore(self, fault: Fault) -> None:
        self._life.points.arm("slot-restore")
        self._kill("slot" if fault.amount < 80 else "jvm")
        self._await_fired("slot-restore")

    def _second_restore(self, fault: Fault) -> None:
        self._slot_restore(fault)
        self._crash("slot-restore")

    def _durable_file_empty(self, fault: Fault) -> None:
        self._crash_until_noticed(fault.count, "kill")

    def _torn_file(self, fault: Fault) -> None:
        self._crash_until_noticed(fault.count, f"torn-{fault.amount}")

    def _full_disk(self, fault: Fault) -> None:
        if self._life.options.get("tolerable") is None:
            self._crash("durable-file-empty", fault.count, "full")
            self._fail_unless_it_did()
        else:
            self._crash_until_noticed(fault.count, "full")

    def _crash_until_noticed(self, count: int, action: str) -> None:
        """The process that compacts state writes files too, and a job goes on without it; that is no fault."""
        life, before = self._life, self._life.incarnation()
        for _ in range(10):
            self._crash("durable-file-empty", count, action)
            for _ in range(250):
                if life.incarnation() > before or life.driver.ended() is not None:
                    return
                threading.Event().wait(0.02)
        raise ViolationError("the job did not notice what happened to 10 files")

    def _late_checkpoint(self, fault: Fault) -> None:
        """One slot's disk is slower than the checkpoint's timeout. Where that is tolerable, the job then fails too."""
        seen = self._life.driver.said().count("it took longer than")
        self._crash("slot-before-state-file", fault.count, "wait-3")
        life = self._life
        life.wait(lambda: life.driver.said().count("it took longer than") > seen, "a late checkpoint", alive=True)
        self._fail_unless_it_did()

    def _fail_unless_it_did(self) -> None:
        """A failed checkpoint that was tolerated: its output is carried, and the next ones must cope with that."""
        if self._life.options.get("tolerable") is not None:
            return
        if self._chance.random() < 0.5:
            self._life.wait_checkpoint(self._life.newest())
        self._kill("slot")

    # ---- kills

    def _kill(self, kind: str) -> None:
        life = self._life
        life.wait(lambda: life.driver.family.kill(kind, self._chance.choice), f"a {kind} to kill")

    def _pause(self) -> None:
        threading.Event().wait(self._chance.uniform(0, 0.4))

    def _kill_slot(self, fault: Fault) -> None:
        self._pause()
        self._kill("slot")

    def _kill_jvm(self, fault: Fault) -> None:
        self._pause()
        self._kill("jvm")

    def _kill_driver(self, fault: Fault) -> None:
        self._pause()
        self._kill("driver")

    def _kill_worker(self, fault: Fault) -> None:
        self._kill_until_noticed("worker")

    def _kill_daemon(self, fault: Fault) -> None:
        """Its workers live on and would go on working, so that nobody would need it."""
        self._kill("daemon")
        self._kill_until_noticed("worker")

    def _kill_until_noticed(self, kind: str) -> None:
        """Spark replaces one that is idle without failing a task; that is no fault."""
        life, before = self._life, self._life.incarnation()
        for _ in range(50):
            life.driver.family.kill(kind, self._chance.choice)
            for _ in range(30):
                if life.incarnation() > before:
                    return
                threading.Event().wait(0.02)
        raise ViolationError(f"the job did not notice the death of 50 {kind}s")

    # ---- sleepers

    def _stopped_driver(self, fault: Fault) -> None:
        life, before = self._life, self._life.incarnation()
        sleeper = life.driver
        if fault.amount < 50:
            self._crash(self._chance.choice(sorted(DRIVER_POINTS.keys() & _STOPS)), fault.count, "stop")
        else:
            self._pause()
            sleeper.process.send_signal(signal.SIGSTOP)
        life.points.disarm()
        life.start(take_over=True)
        life.recover(before)
        sleeper.process.send_signal(signal.SIGCONT)
        self._bury(sleeper)

    def _bury(self, sleeper: Driver) -> None:
        self._life.wait(lambda: sleeper.ended() is not None, "a superseded driver to end")
        if sleeper.ended() == 0 or "superseded" not in sleeper.said():
            raise ViolationError(f"a superseded driver ended with {sleeper.ended()}:\n{sleeper.tail()}")
        if left := sleeper.family.wait_gone():
            raise ViolationError(f"a superseded driver left processes behind: {left}")

    def _stopped_slot(self, fault: Fault) -> None:
        life, before = self._life, self._life.incarnation()
        old = life.driver
        slots = life.wait(lambda: old.family.of_kind("slot"), "a slot to stop")
        victim = self._chance.choice(slots)
        old.family.signal(victim, signal.SIGSTOP)
        self._pause()
        self._kill("driver")
        life.recover(before)
        old.family.signal(victim, signal.SIGCONT)
        if left := old.family.wait_gone():
            raise ViolationError(f"a dead driver's processes go on: {left}")

    # ---- servers

    def _outage(self, fault: Fault) -> None:
        """At any moment; or while somebody is stopped between two steps of a commit; or dies there."""
        life, before = self._life, self._life.newest()
        assert isinstance(life, ServedLife)
        if fault.amount < 40:
            self._pause()
            life.outage(fault.kind, self._chance)
        else:
            steps = [point for point in (*COMMITTING, *SLOT_POINTS) if life.kind in POINTS[point]]
            stops = fault.amount < 70
            self._crash(self._chance.choice(sorted(steps)), fault.count, "stop" if stops else "kill")
            stopped = life.points.fired()
            life.outage(fault.kind, self._chance)
            if stops and stopped is not None:
                os.kill(stopped, signal.SIGCONT)
        life.go_on(before)

    # ---- damage

    def _flipped_bit(self, fault: Fault) -> None:
        """The job refuses to start and names the file; with the bit flipped back it goes on."""
        life = self._life
        self._kill("driver")
        self._await_death()
        life.driver.family.wait_gone()
        life.forget_machine()
        path = self._file_to_damage()
        position, bit = self._chance.randrange(path.stat().st_size), self._chance.randrange(8)
        flip_bit(path, position, bit)
        refused = life.start()
        life.wait(lambda: refused.ended() is not None, "a damaged checkpoint to be refused")
        flip_bit(path, position, bit)
        if refused.ended() == 0 or str(path) not in refused.said():
            raise ViolationError(f"bit {bit} of byte {position} of {path} was flipped, and:\n{refused.tail()}")
        life.start()

    def _file_to_damage(self) -> Path:
        """A file that the next start has to read."""
        life, newest = self._life, self._life.newest()
        assert newest is not None
        state = [life.job / handle["file"] for chain in oracle.metadata(newest)["state"] for handle in chain]
        files = [life.job / "_job", newest / "_metadata"]
        if state:  # there is none before the first record
            files.append(self._chance.choice(state))
        return self._chance.choice(files)

    def _clock_jump(self, fault: Fault) -> None:
        self._life.clock.jump((fault.amount - 50) * HOUR)
        self._life.wait_checkpoint(self._life.newest())
        self._kill("slot")


_STOPS = {"after-epoch", "before-metadata", "before-rename", "after-rename", "before-confirm", "after-confirm"}
