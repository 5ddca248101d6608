"""The oracle itself: it accepts what is right and notices one lost, repeated, wrong or leftover thing."""

from __future__ import annotations

import pytest

from tests.chaos import oracle
from tests.chaos.oracle import Lines, ViolationError

LAST, KEYS = 60, 7


def _right(first: int = 0) -> tuple[Lines, Lines]:
    """What a run without faults might have left, of input in an order that a rollback could have caused."""
    state = {key: list(value) for key, value in oracle.final_state(first, KEYS).items()}
    numbers: Lines = []
    sums: Lines = []
    middle = (first + LAST) // 2
    for place, number in enumerate([*range(middle, LAST), *range(first, middle)]):
        file, value = f"part-{place // 20}", state.setdefault(number % KEYS, [0, 0])
        value[0] += 1
        value[1] += number
        numbers.append((file, str(number)))
        sums.append((file, f"{number % KEYS},{value[0]},{value[1]}"))
    return numbers, sums


def _check(numbers: Lines, sums: Lines, *, first: int = 0, complete: bool = True) -> None:
    oracle.check_numbers(numbers, first, LAST, complete=complete)
    oracle.check_sums(sums, first, LAST, KEYS, complete=complete)


@pytest.mark.parametrize("first", [0, 3, 20])
def test_the_right_output_is_accepted(first: int) -> None:
    _check(*_right(first), first=first)


def test_output_that_is_not_complete_yet_is_accepted_if_asked_to() -> None:
    numbers, sums = _right()
    _check(numbers[:30], sums[:30], complete=False)
    with pytest.raises(ViolationError):
        _check(numbers[:30], sums, complete=True)
    with pytest.raises(ViolationError):
        _check(numbers, sums[:30], complete=True)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("place", [0, 25, 59])
def test_a_lost_record_is_noticed(which: int, place: int) -> None:
    output = _right()
    del output[which][place]
    with pytest.raises(ViolationError):
        _check(*output)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("place", [0, 25, 59])
def test_a_repeated_record_is_noticed_at_once(which: int, place: int) -> None:
    output = _right()
    output[which].append(("part-9", output[which][place][1]))
    with pytest.raises(ViolationError):
        _check(*output, complete=False)


def test_state_that_counted_a_record_twice_is_noticed() -> None:
    """As after a restore of state that is ahead of the source: counts go on, but one number was added again."""
    numbers, sums = _right()
    file, line = sums[-1]
    key, count, total = map(int, line.split(","))
    sums.append((file, f"{key},{count + 1},{total + 29}"))
    with pytest.raises(ViolationError):
        _check(numbers, sums, complete=False)


def test_state_after_a_number_is_what_counting_gives() -> None:
    assert oracle.final_state(9, 7) == {0: (2, 7), 1: (2, 9), 2: (1, 2), 3: (1, 3), 4: (1, 4), 5: (1, 5), 6: (1, 6)}


def test_state_after_so_many_numbers_of_each_partition_is_what_counting_gives() -> None:
    assert oracle.state_at([3, 3, 3], 7) == oracle.final_state(9, 7)
    assert oracle.state_at([2, 0], 7) == {0: (1, 0), 2: (1, 2)}  # the numbers 0 and 2 of the first of two partitions


# ---- windows


def _right_windows() -> list[tuple[int, int, int, int]]:
    """Of 150 numbers and 3 keys: one window is full, the other the end of the input."""
    return [
        (key, start, len(range(first + (key - first) % 3, last, 3)), sum(range(first + (key - first) % 3, last, 3)))
        for start, first, last in ((0, 0, 100), (1000, 100, 150))
        for key in range(3)
    ]


def test_the_right_windows_are_accepted() -> None:
    oracle.check_windows(_right_windows(), 150, 3, complete=True)
    oracle.check_windows(_right_windows()[:3], 150, 3, complete=False)


@pytest.mark.parametrize("place", range(6))
def test_a_lost_window_is_noticed(place: int) -> None:
    windows = _right_windows()
    del windows[place]
    with pytest.raises(ViolationError, match="1 windows lost"):
        oracle.check_windows(windows, 150, 3, complete=True)


@pytest.mark.parametrize("place", range(6))
def test_a_repeated_or_wrong_window_is_noticed_at_once(place: int) -> None:
    windows = _right_windows()
    with pytest.raises(ViolationError, match="twice"):
        oracle.check_windows([*windows, windows[place]], 150, 3, complete=False)
    key, start, count, total = windows[place]
    windows[place] = key, start, count + 1, total + 7
    with pytest.raises(ViolationError, match="and not"):
        oracle.check_windows(windows, 150, 3, complete=False)
