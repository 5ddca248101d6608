"""Negative controls: with a promise of the engine broken on purpose, the oracle must find the output wrong.

Without these, nobody would know whether a chaos run without violations means anything.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos import oracle
from tests.chaos.life import Life
from tests.chaos.oracle import ViolationError
from tests.chaos.served_life import ServedLife
from tests.chaos.servers import Servers


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Life]]:
    lives: list[Life] = []

    def make(kind: str, broken: str, **options: int) -> Life:
        life = Life(tmp_path / "life", kind, **options)
        lives.append(life)
        life.environment["CHAOS_BREAK"] = broken
        life.start()
        life.wait_checkpoint()
        return life

    yield make
    for life in lives:
        life.close()


def _crash(life: Life, point: str, count: int = 1, action: str = "kill") -> None:
    life.points.arm(point, count, action)
    life.wait(life.points.fired, f"a crash at {point}")


def _must_be_noticed(life: Life) -> None:
    """The oracle finds what is visible wrong, at once or a little later."""

    def wrong() -> bool:
        try:
            life.check_so_far()
        except ViolationError:
            return True
        return False

    life.wait(wrong, "the oracle to notice", timeout=30)


def test_output_that_is_committed_before_the_metadata_is_repeated(start: Callable[..., Life]) -> None:
    life = start("file", "commit-before-metadata")
    before = life.incarnation()
    _crash(life, "before-rename", 2)
    life.recover(before)
    _must_be_noticed(life)


@pytest.mark.timeout(300)
def test_transactions_of_kafka_that_are_committed_before_the_metadata_are_repeated(tmp_path: Path) -> None:
    with contextlib.closing(Servers()) as servers:
        life = ServedLife(tmp_path / "life", "kafka", servers, "control")
        with contextlib.closing(life):
            life.environment["CHAOS_BREAK"] = "commit-before-metadata"
            life.start()
            life.wait_checkpoint()
            before = life.incarnation()
            _crash(life, "before-rename", 2)
            life.recover(before)
            _must_be_noticed(life)


def test_without_checksums_a_flipped_bit_changes_the_result(start: Callable[..., Life]) -> None:
    life = start("file", "no-checksum")
    before = life.incarnation()
    _crash(life, "after-confirm", 2)
    life.wait(lambda: life.driver.ended() is not None, "its end")
    newest = life.newest()
    assert newest is not None
    data, position = (newest / "_metadata").read_bytes(), b'"position": %d' % oracle.position(newest)
    at = data.index(position) + len(b'"position": ') + 1  # the second digit: a number must not begin with 0
    (newest / "_metadata").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])  # 48 and 49, 50 and 51, ...
    life.recover(before)
    _must_be_noticed(life)


def test_without_fencing_a_driver_that_wakes_late_repeats_output(start: Callable[..., Life]) -> None:
    life = start("transactions", "no-incarnation-check")
    before = life.incarnation()
    _crash(life, "before-metadata", 1, "stop")
    sleeper = life.driver
    life.start(take_over=True)
    life.recover(before)
    sleeper.process.send_signal(signal.SIGCONT)

    _must_be_noticed(life)


def test_output_that_is_thrown_away_with_a_late_checkpoint_is_lost(start: Callable[..., Life]) -> None:
    life = start("transactions", "abort-on-timeout", timeout=1500)
    _crash(life, "slot-before-state-file", 1, "wait-3")
    life.wait(lambda: "was dropped" in life.driver.said(), "a checkpoint to be dropped", alive=True)
    life.wait_checkpoint(life.newest())
    _must_be_noticed(life)


def test_without_a_sweep_transactions_of_the_dead_stay_open(start: Callable[..., Life]) -> None:
    life = start("transactions", "no-sweep")
    before = life.incarnation()
    _crash(life, "slot-after-prepare-commit")
    life.recover(before)
    life.finish()
    with pytest.raises(ViolationError, match="in doubt"):
        life.check_end()
