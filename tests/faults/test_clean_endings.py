"""A job that is interrupted or cancelled leaves no process and no temporary directory, and can go on later."""

from __future__ import annotations

import os
import signal

from tests.faults.supervisor import Arena, wait_until


def test_ctrl_c_while_spark_starts_leaves_nothing_behind(arena: Arena) -> None:
    driver = arena.start()
    wait_until(driver.jvm, "Spark to start")
    os.killpg(driver.pid, signal.SIGINT)  # a terminal tells the whole foreground group
    assert driver.wait() != 0
    driver.wait_family_gone()
    assert list(arena.tmp.iterdir()) == []
    assert not arena.out.exists()


def test_ctrl_c_leaves_nothing_behind_and_a_restart_goes_on(arena: Arena) -> None:
    driver = arena.start()
    arena.wait_checkpoint(driver)
    os.killpg(driver.pid, signal.SIGINT)
    assert driver.wait() != 0
    assert "KeyboardInterrupt" in driver.said()
    driver.wait_family_gone()
    assert list(arena.tmp.iterdir()) == []
    arena.check_so_far()
    arena.finish()


def test_cancel_leaves_nothing_behind_and_a_restart_goes_on(arena: Arena) -> None:
    driver = arena.start(**{"cancel-on-stdin": True})
    arena.wait_checkpoint(driver)
    driver.process.stdin.write(b"\n")
    driver.process.stdin.flush()
    assert driver.wait() != 0
    assert "cancelled" in driver.said()
    driver.wait_family_gone()
    assert list(arena.tmp.iterdir()) == []
    arena.check_so_far()
    arena.finish()
