"""The checkpoint protocol run by hand over the halves of sinks, with sudden deaths at any step.

A death is a BaseException: no handler of the code under test runs for it, nothing is closed, nothing aborted. What a real
SIGKILL leaves behind is what is on the disk, and that is all the next incarnation gets here, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import pytest

from firesteel.common import durable
from firesteel.connectors import (
    file_sink_committer,
    two_phase_commit_committer,
    two_phase_commit_writer,
    write_ahead,
)
from firesteel.connectors.base import CommitterContext, Json, Sink, SinkWriter, WriterContext

SUBTASKS = 2


class Killed(BaseException):
    """The process ends here."""


class Steps:
    """Counts the steps of all code that is watched, and dies at the one it is told to."""

    def __init__(self) -> None:
        self.taken = 0
        self.kills: list[int] = []
        self.last = ""
        self.connections: list[Any] = []  # which a death closes

    def kill_at(self, *steps: int) -> None:
        """Counted from the start, or from the death before."""
        self.taken, self.kills, self.last = 0, list(steps), ""

    def __call__(self, name: str, *details: object) -> None:
        self.taken += 1
        if self.kills and self.taken == self.kills[0]:
            self.kills.pop(0)
            self.taken, self.last = 0, name
            while self.connections:
                self.connections.pop().close()
            raise Killed(name)


step = Steps()


def watch(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Crash points are steps too. Nothing is synced, as no power is cut."""
    for module in (durable, file_sink_committer, two_phase_commit_committer, two_phase_commit_writer, write_ahead):
        monkeypatch.setattr(module, "crash_point", step)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    return step


class HandRun:
    """A job with one source of numbers and some sinks, each of which gets them all."""

    def __init__(self, directory: str, sinks: dict[str, Sink], numbers: int, per_epoch: int = 2) -> None:
        self.directory, self.sinks = directory, sinks
        self.numbers, self.per_epoch = numbers, per_epoch
        self.incarnation = 0
        self.deaths = 0
        # what a checkpoint would hold
        self.checkpoint, self.position, self.confirmed = 0, 0, True
        self.committables: dict[str, list[Json]] = {}

    def run(self) -> HandRun:
        while True:
            try:
                self._run_incarnation()
            except Killed:
                self.deaths += 1
            else:
                return self

    def _run_incarnation(self) -> None:
        self.incarnation += 1
        committers = {
            uid: sink.create_committer(CommitterContext("job", uid, self.incarnation, self.directory))
            for uid, sink in self.sinks.items()
        }
        if not self.confirmed:
            self._commit(committers)
        for committer in committers.values():
            committer.sweep(())
        writers = {
            uid: [
                sink.create_writer(WriterContext("job", uid, self.incarnation, subtask, SUBTASKS, self.directory))
                for subtask in range(SUBTASKS)
            ]
            for uid, sink in self.sinks.items()
        }
        position = self.position
        while position < self.numbers:
            chunk = list(range(position, min(position + self.per_epoch, self.numbers)))
            position += len(chunk)
            for subtasks in writers.values():
                for subtask, writer in enumerate(subtasks):
                    writer.write([number for number in chunk if number % SUBTASKS == subtask])
                    writer.flush()
            if (position // self.per_epoch) % 2 == 0 or position == self.numbers:  # every other epoch has a barrier
                self._barrier(position, writers)
                self._commit(committers)
                for committer in committers.values():
                    committer.sweep(())
        for subtasks in writers.values():
            for writer in subtasks:
                writer.close()
        for committer in committers.values():
            committer.close()

    def _barrier(self, position: int, writers: dict[str, list[SinkWriter]]) -> None:
        committables: dict[str, list[Json]] = {}
        for uid, subtasks in writers.items():
            committables[uid] = []
            for writer in subtasks:
                made = json.loads(json.dumps(writer.prepare_commit()))
                step("pre-committed")
                writer.persist(made)
                committables[uid] += made
        step("before the commit point")
        self.checkpoint, self.position, self.confirmed = self.checkpoint + 1, position, False
        self.committables = committables
        step("after the commit point")

    def _commit(self, committers: dict[str, Any]) -> None:
        for uid, committer in committers.items():
            if self.committables[uid]:
                committer.commit_checkpoint(self.checkpoint, self.committables[uid])
            step("one sink committed")
        self.confirmed = True
        step("confirmed")


def every_death(make: Any, check: Any, *, most: int = 2000) -> int:
    """Run with a death at the first step, at the second, and so on; the number of steps there are.

    :param make: gives a new HandRun; :param check: is called with it when it has ended.
    """
    for kill in range(1, most):
        step.kill_at(kill)
        run = make()
        run.run()
        check(run)
        if not run.deaths:
            return kill - 1
    raise AssertionError("the run does not end")


def files_below(directory: str) -> Sequence[str]:
    return [os.path.join(path, name) for path, _, names in os.walk(directory) for name in names]
