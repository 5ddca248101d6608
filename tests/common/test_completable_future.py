import threading
from concurrent.futures import CancelledError

import pytest

from firesteel.common import CompletableFuture


def test_the_first_completion_wins():
    future: CompletableFuture[int] = CompletableFuture()
    assert not future.done()
    assert future.set_result(1)
    assert not future.set_result(2)
    assert not future.set_exception(ValueError())
    assert not future.cancel()
    assert future.done()
    assert not future.cancelled()
    assert future.result() == 1
    assert future.exception() is None


def test_an_exception_is_raised_by_result_and_returned_by_exception():
    future: CompletableFuture[int] = CompletableFuture()
    error = ValueError("no")
    future.set_exception(error)
    with pytest.raises(ValueError, match="no"):
        future.result()
    assert future.exception() is error


def test_a_cancelled_future_is_done_and_stays_cancelled():
    future: CompletableFuture[int] = CompletableFuture()
    assert future.cancel()
    assert future.cancel()
    assert future.cancelled()
    assert future.done()
    assert not future.set_result(1)
    with pytest.raises(CancelledError):
        future.result()


def test_exception_does_not_wait():
    assert CompletableFuture().exception() is None


def test_result_gives_up_after_its_timeout():
    with pytest.raises(TimeoutError, match="within 0 seconds"):
        CompletableFuture().result(timeout=0)
    assert CompletableFuture.completed(None).result(timeout=0) is None


def test_result_waits_for_another_thread():
    future: CompletableFuture[str] = CompletableFuture()
    waiting = threading.Event()
    results: list[str] = []

    def wait() -> None:
        waiting.set()
        results.append(future.result())

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    future.set_result("done")
    thread.join()
    assert results == ["done"]


def test_keyboard_interrupt_ends_the_wait(monkeypatch):
    future: CompletableFuture[str] = CompletableFuture()
    slices: list[float] = []

    def interrupted(timeout: float) -> bool:
        slices.append(timeout)
        raise KeyboardInterrupt

    monkeypatch.setattr(future._completed, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        future.result()
    assert slices[0] < 1
    assert not future.done()


def test_only_one_of_many_threads_completes_a_future():
    future: CompletableFuture[int] = CompletableFuture()
    start = threading.Barrier(8)
    winners: list[int] = []

    def complete(i: int) -> None:
        start.wait()
        if future.set_result(i):
            winners.append(i)

    threads = [threading.Thread(target=complete, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert winners == [future.result()]


def test_str_tells_the_state():
    future: CompletableFuture[int] = CompletableFuture()
    assert str(future) == "CompletableFuture[Not completed]"
    future.cancel()
    assert str(future) == "CompletableFuture[Completed exceptionally]"
