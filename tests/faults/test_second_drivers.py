"""A job that runs is not disturbed by a second driver or another program under its name, unless that is asked for."""

from __future__ import annotations

import signal

from tests.faults.supervisor import LASTING, Arena


def test_a_second_driver_is_refused_and_the_first_one_goes_on_undisturbed(arena: Arena) -> None:
    arena.options |= {"records": 9000, "rate": 900}
    first = arena.start()
    arena.wait_checkpoint(first)
    second = arena.start()  # refused long before Spark is up
    assert second.wait() > 0
    assert f"job 'sensor' is running already: process {first.pid} on " in second.said()
    assert "--take-over" in second.said()

    first.signal(signal.SIGSTOP)  # so that it does not finish meanwhile
    third = arena.start()
    assert third.wait() > 0
    assert "which is stopped and goes on when it gets SIGCONT" in third.said()
    wrong = arena.start(take_over=True, uid="another program")
    assert wrong.wait() > 0
    assert "(uid sums)" in wrong.said() and "(uid another program)" in wrong.said()
    first.signal(signal.SIGCONT)

    assert first.wait() == 0, first.said()
    assert arena.newest_incarnation() == 1  # nobody claimed anything
    arena.check_end()


def test_a_driver_that_is_alive_is_replaced_when_that_is_asked_for(arena: Arena) -> None:
    """One that was killed needs no asking: all other fault tests start the next one without."""
    first = arena.start(rate=LASTING)
    arena.wait_checkpoint(first)
    second = arena.start(take_over=True)
    assert first.wait() > 0
    assert "another driver has taken the job over" in first.said()
    assert f"taken over from process {first.pid} on " in second.said()
    assert second.wait() == 0, second.said()
    arena.check_end()
