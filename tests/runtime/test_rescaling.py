"""State goes on with another parallelism as if nothing had happened, and goes on from there with yet another one."""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any
from unittest import mock

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from firesteel.common import RestartStrategies
from firesteel.common.storage import local
from firesteel.coordinator.lineage import JobDirectory
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime.compacting import Compactor
from firesteel.runtime.windows import waiting
from firesteel.state.compaction import compact
from firesteel.testing import GraphHarness
from firesteel.testing.snapshots import temporary_directory
from tests.support.keeping_state import keeping_state
from tests.support.rescaled_program import EPOCH_MS, OPERATORS, Hoard, Record, describe

KEYS = 40
EPOCHS = 14

Script = tuple[list[list[Record]], list[list[tuple[str, int]]]]


def script(seed: int) -> Script:
    """Records in even epochs, each later than those of the epoch before, and changes of rules in odd ones."""
    generator = random.Random(seed)
    records: list[list[Record]] = [[] for _ in range(EPOCHS)]
    rules: list[list[tuple[str, int]]] = [[] for _ in range(EPOCHS)]
    for epoch in range(EPOCHS):
        if epoch % 2:
            rules[epoch] = [(generator.choice("xyz"), generator.randrange(100)) for _ in range(2)]
        else:
            times = [epoch * EPOCH_MS + generator.randrange(EPOCH_MS) for _ in range(25)]
            records[epoch] = [(f"key {generator.randrange(KEYS)}", generator.randrange(100), time) for time in times]
    return records, rules


class Faults:
    """What happens at the next checkpoint."""

    drop = compact = False

    def write(self, path: str, data: bytes) -> None:
        if self.drop and "/slot-" in path and "-chk-" in path:
            raise OSError(28, "No space left on device")
        _write_durable(path, data)

    def shortened(self, compactor: Compactor, chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not self.compact or not chain:
            return chain
        return [compact(compactor._storage, f"{compactor._prefix}{uuid.uuid4().hex}.state", chain)]


_write_durable = local.write_durable


@contextlib.contextmanager
def injected(faults: Faults) -> Iterator[None]:
    with (
        mock.patch.object(local, "write_durable", faults.write),
        mock.patch.object(Compactor, "shortened", lambda self, chain: faults.shortened(self, chain)),
    ):
        yield


def start(program: Script, parallelisms: Sequence[int], epoch: int, directory: str | None = None) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    streams = describe(env, *program, parallelisms)
    every = 1 if directory else None
    harness = GraphHarness(
        env, collect=streams, directory=directory, checkpoint_every=every, clock=epoch * EPOCH_MS, check_mutation=False
    )
    return harness, streams


def uninterrupted(program: Script) -> dict[str, list[Any]]:
    harness, streams = start(program, [1] * len(OPERATORS), 0)
    with harness:
        while harness.step():
            harness.advance_clock(EPOCH_MS)
        return results(harness, streams)


def results(harness: GraphHarness, streams: Sequence[Any]) -> dict[str, list[Any]]:
    return {name: sorted(harness.results(stream), key=repr) for name, stream in zip(OPERATORS, streams, strict=True)}


def next_epoch(directory: str) -> int:
    found = JobDirectory.open(directory, "harness").latest()
    position: Any = found.metadata.positions["records"] if found is not None else 0
    return int(position)


def check_hoard(harness: GraphHarness, program: Script, epoch: int) -> None:
    """Everything taken before that epoch is somebody's, and everybody knows it."""
    taken = sorted(number for records in program[0][:epoch] for _, number, _ in records)
    found = [each for task in harness._engine.tasks for each in task.assembly.functions if isinstance(each, Hoard)]
    assert sorted(number for each in found for number in each.had) == sorted(taken * 2)  # there are two of them
    assert all(sorted(each.all_had) == taken for each in found)


steps = st.lists(
    st.tuples(st.sampled_from(["", "", "", "drop", "compact", "fail"]), st.booleans()), min_size=1, max_size=4
)
one_for_each = {"min_size": len(OPERATORS), "max_size": len(OPERATORS)}
phases = st.lists(
    st.tuples(st.lists(st.none() | st.integers(1, 8), **one_for_each), steps),  # None: the same as before
    min_size=2,
    max_size=4,
)


@settings(max_examples=15, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 1000), phases=phases)
@example(seed=53, phases=[([2] * len(OPERATORS), [("", False)] * EPOCHS)])  # has finished when it is started again
def test_any_changes_of_parallelism_leave_no_trace_in_what_a_program_gives_out(seed: int, phases: list[Any]) -> None:
    check_phases(seed, phases, [False])


@pytest.mark.parametrize("in_rocksdb", [[True], [True, False], [False, True, True]])
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(seed=st.integers(0, 1000), phases=phases)
def test_nor_do_they_when_state_is_in_rocksdb_or_moves_there_and_back(
    in_rocksdb: list[bool], seed: int, phases: list[Any]
) -> None:
    check_phases(seed, phases, in_rocksdb)


@pytest.mark.parametrize("in_rocksdb", [[False], [True], [False, True]])
def test_what_waits_to_be_sent_to_windows_finds_its_keys_whoever_has_them_then(in_rocksdb: list[bool]) -> None:
    split = set()

    def part(element: waiting.Element, *owned: Any, real: Any = waiting._part) -> waiting.Element:
        mine: waiting.Element = real(element, *owned)
        if 0 < len(mine.keys) < len(element.keys):
            split.add(element.kind)
        return mine

    with mock.patch.object(waiting, "_part", part):
        for seed in range(3):
            check_phases(
                seed, [([p] * len(OPERATORS), [("", False)] * (2 + seed % 2)) for p in (2, 3, 1, 4)], in_rocksdb
            )
    assert split == {"reducing", "aggregating"}


def check_phases(seed: int, phases: list[Any], in_rocksdb: list[bool]) -> None:
    """
    :param in_rocksdb: whether state is there in the first phase, the second, and so on in turns.
    """
    stores, program = cycle(in_rocksdb), script(seed)
    expected = uninterrupted(program)
    assert all(expected.values())
    found: dict[str, list[Any]] = {name: [] for name in OPERATORS}
    faults = Faults()
    with temporary_directory() as directory, injected(faults):
        parallelisms = [1] * len(OPERATORS)
        for changed, steps in [*phases, (phases[0][0], None)]:
            parallelisms = [new or old for new, old in zip(changed, parallelisms, strict=True)]
            epoch = next_epoch(directory)
            harness, streams = start(program, parallelisms, epoch, directory)
            with harness, keeping_state(next(stores), directory):
                for _ in range(1 + seed % 2):  # some are lost again before their first checkpoint
                    harness.fail()  # starts them
                check_hoard(harness, program, epoch)
                run(harness, faults, steps, epoch)
                for name, given_out in results(harness, streams).items():
                    found[name] += given_out
    assert {name: sorted(values, key=repr) for name, values in found.items()} == expected


def run(harness: GraphHarness, faults: Faults, steps: list[tuple[str, bool]] | None, epoch: int) -> None:
    """Some epochs, or all that are left. The checkpoint at the end of the input is never dropped."""
    for what, leave in steps if steps is not None else [("", False)] * EPOCHS:
        if harness.finished:
            return
        last = epoch + 1 >= EPOCHS
        faults.drop, faults.compact = what == "drop" and not last, what == "compact"
        harness.step()
        dropped, faults.drop, faults.compact = faults.drop, False, False
        if dropped and leave:
            return  # what was done since the last completed checkpoint is lost
        if what == "fail" and not harness.finished:
            harness.fail()
        epoch += 1
        harness.advance_clock(EPOCH_MS)
