from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.serialization import Encoder
from firesteel.connectors.base import Committer, CommitterContext, SinkWriter, WriterContext
from firesteel.connectors.part_names import PartName
from firesteel.datastream.connectors.file_system import FileSink, OutputFileConfig, RollingPolicy
from firesteel.errors import CheckpointError, ConfigurationError


class Job:
    """One incarnation of a job with one file sink."""

    def __init__(self, path: Path, *, job: str = "job", uid: str = "sink", incarnation: int = 1) -> None:
        self.path = path
        self.job = job
        self.uid = uid
        self.incarnation = incarnation
        encoder = Encoder.simple_string_encoder()
        self.sink: FileSink = pickle.loads(pickle.dumps(FileSink.for_row_format(str(path), encoder).build()))

    def writer(self, subtask: int = 0) -> SinkWriter:
        return self.sink.create_writer(WriterContext(self.job, self.uid, self.incarnation, subtask, 4))

    def committer(self) -> Committer:
        return self.sink.create_committer(CommitterContext(self.job, self.uid, self.incarnation))

    def pre_committed(self, *values: Any, subtask: int = 0) -> list[Any]:
        writer = self.writer(subtask)
        writer.write(values)
        committables = json.loads(json.dumps(writer.prepare_commit()))
        writer.close()
        return committables  # type: ignore[no-any-return]

    def next_incarnation(self) -> Job:
        return Job(self.path, job=self.job, uid=self.uid, incarnation=self.incarnation + 1)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "out")


def visible(job: Job) -> list[str]:
    """What a reader of the directory sees, file by file."""
    return [p.read_text() for p in sorted(job.path.iterdir()) if not p.name.startswith(".")]


def temporaries(job: Job) -> int:
    return sum(p.name.startswith(".") for p in job.path.iterdir())


def test_nothing_is_visible_before_the_commit(job: Job) -> None:
    writer = job.writer()
    writer.write(["a", 1])
    writer.write([None])
    assert visible(job) == []
    committables = writer.prepare_commit()
    assert visible(job) == []
    job.committer().commit(committables)
    assert visible(job) == ["a\n1\nNone\n"]
    assert temporaries(job) == 0


def test_a_writer_without_records_makes_no_file(job: Job) -> None:
    writer = job.writer()
    writer.write([])
    writer.flush()
    assert writer.prepare_commit() == []
    assert list(job.path.iterdir()) == []


def test_every_barrier_starts_a_new_file(job: Job) -> None:
    writer, committer = job.writer(), job.committer()
    for value in "ab":
        writer.write([value])
        committer.commit(writer.prepare_commit())
    assert visible(job) == ["a\n", "b\n"]
    assert writer.prepare_commit() == []


def test_a_committable_says_all_the_committer_needs(job: Job) -> None:
    (committable,) = job.pre_committed("abc")
    assert set(committable) == {"temporary", "final", "size"}
    assert committable["size"] == 4
    assert os.path.getsize(committable["temporary"]) == 4


def test_committing_twice_is_committing_once(job: Job) -> None:
    committables = job.pre_committed("a")
    job.committer().commit(committables)
    job.committer().commit(committables)
    assert visible(job) == ["a\n"]


def test_a_commit_interrupted_halfway_is_completed(job: Job) -> None:
    first, second = job.pre_committed("a", subtask=0), job.pre_committed("b", subtask=1)
    job.committer().commit(first)
    job.next_incarnation().committer().commit(first + second)
    assert visible(job) == ["a\n", "b\n"]


def test_a_lost_file_is_an_error_that_names_it_and_does_not_hold_up_the_others(job: Job) -> None:
    (lost,) = job.pre_committed("a", subtask=0)
    others = job.pre_committed("b", subtask=1)
    os.unlink(lost["temporary"])
    with pytest.raises(CheckpointError) as raised:
        job.committer().commit([lost, *others])
    assert lost["temporary"] in str(raised.value)
    assert lost["final"] in str(raised.value)
    assert visible(job) == ["b\n"]


def test_a_committed_file_that_changed_is_an_error(job: Job) -> None:
    committables = job.pre_committed("a")
    job.committer().commit(committables)
    Path(committables[0]["final"]).write_text("longer than before\n")
    with pytest.raises(CheckpointError, match="should have 2 bytes but has 19"):
        job.committer().commit(committables)


def test_a_truncated_temporary_file_is_never_shown(job: Job) -> None:
    committables = job.pre_committed("abc")
    Path(committables[0]["temporary"]).write_text("a")
    with pytest.raises(CheckpointError, match="should have 4 bytes but has 1"):
        job.committer().commit(committables)
    assert visible(job) == []


def test_a_commit_never_overwrites_a_file(job: Job) -> None:
    committables = job.pre_committed("a")
    Path(committables[0]["final"]).write_text("somebody else's")
    with pytest.raises(CheckpointError, match="there already"):
        job.committer().commit(committables)
    assert visible(job) == ["somebody else's"]


def test_an_abort_deletes_the_temporary_file_and_may_be_repeated(job: Job) -> None:
    committables = job.pre_committed("a")
    job.committer().abort(committables)
    job.committer().abort(committables)
    assert list(job.path.iterdir()) == []


def test_an_abort_after_the_commit_changes_nothing(job: Job) -> None:
    committables = job.pre_committed("a")
    job.committer().commit(committables)
    job.committer().abort(committables)
    assert visible(job) == ["a\n"]


def test_closing_a_writer_throws_away_only_what_was_never_pre_committed(job: Job) -> None:
    writer = job.writer()
    writer.write(["a"])
    committables = writer.prepare_commit()
    writer.write(["b"])
    writer.close()
    assert visible(job) == []
    assert temporaries(job) == 1
    job.committer().commit(committables)
    assert visible(job) == ["a\n"]


def test_a_sweep_deletes_what_older_incarnations_left_except_what_is_kept(job: Job) -> None:
    writer = job.writer()
    writer.write(["written and never pre-committed"])
    writer.close()
    job.pre_committed("pre-committed and not recorded", subtask=1)
    recorded = job.pre_committed("recorded", subtask=2)
    done = job.pre_committed("done", subtask=3)
    job.committer().commit(done)
    successor = job.next_incarnation()
    successor.committer().sweep(recorded)
    assert temporaries(job) == 1
    successor.committer().commit(recorded)
    assert sorted(visible(job)) == ["done\n", "recorded\n"]


def test_a_sweep_leaves_everybody_elses_files_alone(job: Job) -> None:
    neighbours = [
        Job(job.path, job="another job"),
        Job(job.path, uid="another sink"),
        Job(job.path, incarnation=2),
        Job(job.path, incarnation=3),
    ]
    kept = [neighbour.pre_committed("theirs") for neighbour in neighbours]
    job.pre_committed("swept")
    strangers = [".hidden", ".firesteel-x.inprogress", "part-1"]
    for name in strangers:
        (job.path / name).touch()
    job.next_incarnation().committer().sweep([])
    assert temporaries(job) == len(kept) + 2
    assert all(os.path.exists(committables[0]["temporary"]) for committables in kept)
    assert all((job.path / name).exists() for name in strangers)


def test_a_sweep_may_be_repeated(job: Job) -> None:
    job.pre_committed("a")
    for _ in range(2):
        job.next_incarnation().committer().sweep([])
    assert list(job.path.iterdir()) == []


def test_a_writer_made_twice_does_not_reuse_names(job: Job) -> None:
    first = job.pre_committed("a")
    job.committer().commit(first)
    second, third = job.pre_committed("b"), job.pre_committed("c")
    job.committer().commit(second + third)
    assert visible(job) == ["a\n", "b\n", "c\n"]


def test_jobs_sinks_incarnations_and_subtasks_write_different_files(tmp_path: Path) -> None:
    jobs = [
        Job(tmp_path, job=name, uid=uid, incarnation=incarnation)
        for name in "ab"
        for uid in "xy"
        for incarnation in (1, 2)
    ]
    finals = [job.pre_committed("v", subtask=subtask)[0]["final"] for job in jobs for subtask in range(2)]
    assert len(set(finals)) == len(finals) == 16


def test_part_names_have_the_prefix_and_suffix_asked_for(tmp_path: Path) -> None:
    config = OutputFileConfig.builder().with_part_prefix("alerts").with_part_suffix(".csv").build()
    assert (config.get_part_prefix(), config.get_part_suffix()) == ("alerts", ".csv")
    encoder = Encoder.simple_string_encoder()
    sink = FileSink.for_row_format(tmp_path.as_uri(), encoder).with_output_file_config(config).build()
    writer = sink.create_writer(WriterContext("job", "sink", 7, 3, 4))
    writer.write(["a"])
    (committable,) = writer.prepare_commit()
    name = Path(committable["final"])
    assert name.parent == tmp_path
    assert name.name.startswith("alerts-")
    assert name.name.endswith("-7-0-3.csv")


def test_a_full_part_is_followed_by_another_and_both_wait_for_the_barrier(tmp_path: Path) -> None:
    encoder = Encoder.simple_string_encoder()
    builder = FileSink.for_row_format(str(tmp_path), encoder)
    sink = builder.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=4)).build()
    writer = sink.create_writer(WriterContext("job", "sink", 1, 0, 1))
    for values in (["a", "b"], ["c"]):
        writer.write(values)
    committables = writer.prepare_commit()
    assert [committable["size"] for committable in committables] == [4, 2]
    assert writer.prepare_commit() == []


@given(st.text(), st.text(), st.integers(0), st.integers(0), st.integers(0))
def test_a_temporary_name_says_whose_it_is(job: str, uid: str, incarnation: int, sequence: int, subtask: int) -> None:
    name = PartName.of(job, uid, incarnation, sequence, subtask)
    assert PartName.parse(name.temporary()) == name
    assert PartName.parse(name.final("part", "")) is None


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="Encoder"):
        FileSink.for_row_format("/x", str)  # type: ignore[arg-type]
    for prefix, suffix in ((".part", ""), ("a/b", ""), ("", ""), ("part", "/x")):
        with pytest.raises(ConfigurationError, match="part files"):
            OutputFileConfig.builder().with_part_prefix(prefix).with_part_suffix(suffix).build()
    with pytest.raises(ConfigurationError, match="part_size"):
        RollingPolicy.default_rolling_policy(part_size=0)
