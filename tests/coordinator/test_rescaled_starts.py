"""A job that was told another parallelism starts with what it had, or is told why it cannot."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common.storage import MemoryStorage, Storage
from firesteel.coordinator.completed import Completed
from firesteel.coordinator.lineage import JobDirectory
from firesteel.coordinator.metadata import CheckpointMetadata
from firesteel.coordinator.starting import check_start
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.errors import JobCancelledError, RestoreError
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import CheckpointSettings, JobSettings, StartSettings
from firesteel.runtime import compacting
from firesteel.state.files import NO_GROUP, StateFile
from firesteel.state.parts import PART
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced
from tests.support.waiting import wait_until

KEYS = 500


def program(
    parallelism: int, start_from: str | None = None, keys: int = KEYS, epoch: int = 100
) -> StreamExecutionEnvironment:
    """Numbers, counted by key, without end."""
    env = StreamExecutionEnvironment().set_parallelism(parallelism).enable_checkpointing(1)
    env.get_checkpoint_config().set_max_retained_checkpoints(3)
    env.start = StartSettings(start_from)
    numbers = env.from_source(Sliced(NumberSequenceSource(0, 10**9), epoch), source_name="numbers").uid("numbers")
    pairs = numbers.set_parallelism(1).map(lambda n: (n % keys, 1))
    counts = pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts")
    counts._end(Collect(), "Collect")
    return env


def run_for(
    env: StreamExecutionEnvironment, root: str | Storage, checkpoints: int, *, compacting: bool = False
) -> list[Any]:
    """Until that many checkpoints are complete; what it gave out.

    :param compacting: checkpoints wait for whatever is being compacted.
    """
    run = LocalRun(env, root).in_step()
    left = [checkpoints]

    def count(metadata: CheckpointMetadata) -> None:
        for task in run.engine.tasks if compacting else ():
            compaction = task._snapshots._compactor._running
            if compaction is not None:
                wait_until(lambda compaction=compaction: not compaction.running(), "a compaction")
        left[0] -= 1
        if left[0] <= 0:
            run.job.cancel()

    run.progress.checkpoint = count  # type: ignore[method-assign]
    with pytest.raises(JobCancelledError):
        run.run()
    return run.collected()


def newest(root: str | Storage) -> Completed:
    found = JobDirectory.open(root, "job").latest()
    assert found is not None
    return found


def read_by(checkpoint: Completed) -> int:
    position: Any = checkpoint.metadata.positions["numbers"]
    return int(position["left"][0][0])


def check_continues(results: list[Any], read: int) -> None:
    """Each of the first records of every key follows what was counted of it before."""
    first: dict[int, int] = {}
    for key, count in results:
        first.setdefault(key, count)
    assert first
    for key, count in first.items():
        assert count == len(range(key, read, KEYS)) + 1


def test_state_in_the_drivers_memory_moves_too() -> None:
    memory = MemoryStorage()
    run_for(program(2), memory, 3)
    for parallelism in (3, 1, 4, 2):
        before = newest(memory)
        check_continues(run_for(program(parallelism), memory, 3), read_by(before))
    assert {PART in handle for chain in newest(memory).metadata.state for handle in chain} == {False}  # all is merged


def test_an_older_checkpoint_of_another_parallelism_is_imported_with_its_parts(tmp_path: Path) -> None:
    run_for(program(4), str(tmp_path), 3)
    run_for(program(2), str(tmp_path), 3)
    older = newest(str(tmp_path))
    assert any(PART in handle for chain in older.metadata.state for handle in chain)
    first_line = (Path(older.path) / "_metadata").read_bytes().split(b"\n")[0]
    assert first_line.startswith(b"firesteel-checkpoint 2 ")  # whoever does not know of parts must not read it
    run_for(program(5), str(tmp_path), 2)
    results = run_for(program(3, older.path), str(tmp_path), 2)
    check_continues(results, read_by(older))
    check_continues(run_for(program(7), str(tmp_path), 1), read_by(newest_but(tmp_path, 1)))


def newest_but(root: Path, checkpoints: int) -> Completed:
    directory = JobDirectory.open(str(root), "job")
    numbers = directory.incarnations()
    found = [each for number in reversed(numbers) for each in directory.completed(number)]
    return found[-1 - checkpoints]


def test_files_of_former_owners_are_gone_once_everybody_has_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_for(program(1), str(tmp_path), 2)
    monkeypatch.setattr(compacting, "COMPACT_FILES", 2)
    old = {str(path) for path in tmp_path.rglob("inc-1/state/*")}
    assert old
    results: list[Any] = []
    read = read_by(newest(str(tmp_path)))
    for _ in range(5):
        results += run_for(program(3), str(tmp_path), 10, compacting=True)
        if not any(map(os.path.exists, old)):
            break
    check_continues(results, read)
    assert not any(map(os.path.exists, old))
    assert newest(str(tmp_path)).problem() is None


class Reads:
    """What is read of state files."""

    def __init__(self) -> None:
        self.blocks: Counter[Any] = Counter()
        self.bytes = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    reads, deltas, close = Reads(), StateFile.deltas, StateFile.close

    def counted(self: StateFile, wanted: Callable[[str, int], bool]) -> Iterator[Any]:
        for delta in deltas(self, wanted):
            reads.blocks[self.path, delta.uid, delta.name, delta.group] += 1
            yield delta

    def closed(self: StateFile) -> None:
        reads.bytes += self.bytes_read
        close(self)

    monkeypatch.setattr(StateFile, "deltas", counted)
    monkeypatch.setattr(StateFile, "close", closed)
    return reads


@pytest.mark.parametrize(("before", "after"), [(4, 8), (8, 4), (3, 5), (1, 6)])
def test_every_key_group_is_read_by_the_slot_that_gets_it_and_by_no_other(
    tmp_path: Path, reads: Reads, before: int, after: int
) -> None:
    many = {"keys": 60_000, "epoch": 30_000}  # the index of a file is 6 kB, and read by up to six
    run_for(program(before, **many), str(tmp_path), 2)
    found = newest(str(tmp_path)).metadata
    there = []
    for handle in (handle for chain in found.state for handle in chain):
        with StateFile(str(tmp_path / "job" / handle["file"])) as file:
            there += [
                (file.path, s["uid"], s["name"], block[0]) for s in file.footer["states"] for block in s["blocks"]
            ]
    reads.blocks.clear()
    reads.bytes = 0
    run_for(program(after, **many), str(tmp_path), 1)
    keyed = [block for block in there if block[3] != NO_GROUP]
    assert len(keyed) >= 128
    assert {block: times for block, times in reads.blocks.items() if block[3] != NO_GROUP} == dict.fromkeys(keyed, 1)
    assert reads.bytes < 1.2 * found.size()  # some indexes are read by several, and nothing else


# ---- key groups


def settings(root: Path, **start: Any) -> JobSettings:
    return JobSettings("job", CheckpointSettings(interval_ms=1, directory=str(root)), start=StartSettings(**start))


def key_groups(parallelism: int, root: Path, **start: Any) -> int:
    plan = check_start(program(parallelism).plan(), settings(root, **start))
    return next(operator.max_parallelism for operator in plan.operators if operator.uid == "counts")


def test_the_checkpoints_key_groups_stay_unless_the_program_says_otherwise(tmp_path: Path) -> None:
    assert key_groups(4, tmp_path) == 128
    assert key_groups(100, tmp_path) == 256  # without a checkpoint it follows from the parallelism
    run_for(program(2), str(tmp_path / "few"), 1)
    run_for(program(1).set_max_parallelism(256), str(tmp_path / "many"), 1)
    assert key_groups(100, tmp_path / "few") == 128
    assert key_groups(3, tmp_path / "many") == 256
    assert key_groups(3, tmp_path, restore_from=newest(str(tmp_path / "many")).path) == 256


def test_another_number_of_key_groups_is_refused_with_both_numbers(tmp_path: Path) -> None:
    run_for(program(2), str(tmp_path), 1)
    env = program(2).set_max_parallelism(64)
    for start in (lambda: check_start(env.plan(), settings(tmp_path)), LocalRun(env, str(tmp_path)).run):
        with pytest.raises(
            RestoreError, match=r"uid counts.* has the maximum parallelism 64, and 128 in checkpoint .*chk-1"
        ):
            start()
    check_start(program(2).set_max_parallelism(128).plan(), settings(tmp_path))


def test_more_subtasks_than_key_groups_are_refused_with_both_numbers(tmp_path: Path) -> None:
    run_for(program(2), str(tmp_path), 1)
    with pytest.raises(RestoreError, match=r"has parallelism 200, above its maximum parallelism 128 in checkpoint"):
        check_start(program(200).plan(), settings(tmp_path))


def test_a_plan_that_was_made_for_another_checkpoint_starts_nothing(tmp_path: Path) -> None:
    """A driver that is being replaced may complete one more checkpoint after it was looked for the newest one."""
    run_for(program(1).set_max_parallelism(256), str(tmp_path), 1)
    run = LocalRun(program(2), str(tmp_path))
    with pytest.raises(RestoreError, match=r"has the maximum parallelism 256, and not 128. Start it again"):
        run.run()
    assert run.engine.deployments == []
