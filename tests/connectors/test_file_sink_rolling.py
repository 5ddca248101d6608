"""When part files end, into which buckets they go, and what less than exactly once means for them."""

from __future__ import annotations

import datetime
import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common import Duration, Encoder
from firesteel.connectors.base import CommitterContext, WriterContext
from firesteel.connectors.file_sink_dates import DatePattern, time_zone
from firesteel.connectors.file_sink_writer import MAX_OPEN, FileWriter
from firesteel.datastream import MemorySize
from firesteel.datastream.connectors.base import DeliveryGuarantee
from firesteel.datastream.connectors.file_system import (
    BucketAssigner,
    DateTimeBucketAssigner,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
    StreamingFileSink,
)
from firesteel.errors import CheckpointError, ConfigurationError
from tests.connectors.killing import files_below


class Clock:
    def __init__(self) -> None:
        self.ms = 1_000_000_000_000  # 2001-09-09T01:46:40Z

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def builder(path: Path) -> FileSink.RowFormatBuilder:
    return FileSink.for_row_format(str(path), Encoder.simple_string_encoder())


def writer_of(sink: FileSink, clock: Clock, subtask: int = 0) -> FileWriter:
    os.makedirs(sink.base_path, exist_ok=True)
    return FileWriter(pickle.loads(pickle.dumps(sink)), WriterContext("job", "sink", 1, subtask, 4), clock)


def commit(sink: FileSink, committables: list[Any], incarnation: int = 1) -> None:
    sink.create_committer(CommitterContext("job", "sink", incarnation)).commit(committables)


def contents(path: Path) -> dict[str, list[str]]:
    """What a reader sees: bucket -> the contents of its files."""
    found: dict[str, list[str]] = {}
    for file in sorted(files_below(str(path))):
        bucket, name = os.path.split(os.path.relpath(file, path))
        if not name.startswith("."):
            found.setdefault(bucket, []).append(Path(file).read_text())
    return found


# ---- rolling


def sizes(writer: FileWriter) -> list[int]:
    return [committable["size"] for committable in writer.prepare_commit()]


def test_an_old_file_ends_when_it_is_looked_at(tmp_path: Path, clock: Clock) -> None:
    policy = RollingPolicy.default_rolling_policy(rollover_interval=5_000, inactivity_interval=100_000)
    writer = writer_of(builder(tmp_path).with_rolling_policy(policy).with_bucket_check_interval(1_000).build(), clock)
    for second in range(8):
        clock.ms = 1_000_000_000_000 + second * 1000
        writer.write([second])
        writer.flush()
    assert sizes(writer) == [12, 4]  # 0 to 5, and 6 and 7


def test_a_quiet_file_ends_when_it_is_looked_at(tmp_path: Path, clock: Clock) -> None:
    policy = DefaultRollingPolicy.builder().with_inactivity_interval(Duration.of_seconds(3)).build()
    writer = writer_of(builder(tmp_path).with_rolling_policy(policy).with_bucket_check_interval("1 s").build(), clock)
    for value, pause in (("a", 2_999), ("b", 3_000), ("c", 0)):
        writer.write([value])
        clock.ms += pause
        writer.flush()
    assert sizes(writer) == [4, 2]


def test_files_are_looked_at_once_per_check_interval(tmp_path: Path, clock: Clock) -> None:
    policy = RollingPolicy.default_rolling_policy(rollover_interval=1)
    writer = writer_of(builder(tmp_path).with_rolling_policy(policy).build(), clock)
    for pause in (30_000, 29_999, 1, 1):
        writer.write(["a"])
        clock.ms += pause
        writer.flush()
    assert sizes(writer) == [6, 2]  # the third flush was the first after a minute


def test_a_file_that_ends_with_checkpoints_only_may_have_any_size_and_age(tmp_path: Path, clock: Clock) -> None:
    sink = (
        builder(tmp_path).with_rolling_policy(OnCheckpointRollingPolicy.build()).with_bucket_check_interval(1).build()
    )
    writer = writer_of(sink, clock)
    for _ in range(10):
        writer.write(["a" * 999])
        clock.ms += 10_000_000
        writer.flush()
    assert sizes(writer) == [10_000]


class EveryTen(RollingPolicy):
    """A new file for every number that ends in 0."""

    def should_roll_on_event(self, part_file_state: PartFileInfo, element: Any) -> bool:
        assert part_file_state.get_last_update_time() >= part_file_state.get_creation_time()
        assert part_file_state.get_bucket_id() == ""
        return element % 10 == 0  # type: ignore[no-any-return]

    def should_roll_on_processing_time(self, part_file_state: PartFileInfo, current_time: int) -> bool:
        return False


def test_a_policy_of_ones_own_decides(tmp_path: Path, clock: Clock) -> None:
    writer = writer_of(builder(tmp_path).with_rolling_policy(EveryTen()).build(), clock)
    for number in range(8, 31):
        writer.write([number])
    assert sizes(writer) == [4, 30, 30, 3]


def test_every_policy_ends_files_with_checkpoints(tmp_path: Path) -> None:
    part: Any = None
    policies = [RollingPolicy.default_rolling_policy(), RollingPolicy.on_checkpoint_rolling_policy(), EveryTen()]
    assert all(policy.should_roll_on_checkpoint(part) for policy in policies)


def test_the_builder_of_the_default_policy_takes_sizes_and_durations() -> None:
    policy = (
        DefaultRollingPolicy.builder()
        .with_max_part_size(MemorySize.of_mebi_bytes(2))
        .with_rollover_interval("15 min")
        .build()
    )
    assert (policy.part_size, policy.rollover_interval, policy.inactivity_interval) == (2 << 20, 900_000, 60_000)


# ---- buckets


class ByCity(BucketAssigner):
    def get_bucket_id(self, element: Any, context: BucketAssigner.Context) -> str:
        assert context.timestamp() is None
        return str(element[0])


def test_every_bucket_has_files_of_its_own(tmp_path: Path, clock: Clock) -> None:
    sink = builder(tmp_path).with_bucket_assigner(ByCity()).build()
    writer = writer_of(sink, clock)
    writer.write([("city=Oslo/day=1", 1), ("city=Rome", 2), ("city=Oslo/day=1", 3), ("", 4)])
    committables = writer.prepare_commit()
    assert contents(tmp_path) == {}
    assert not any(os.path.isdir(tmp_path / name) for name in os.listdir(tmp_path))  # an aborted bucket leaves nothing
    commit(sink, committables)
    commit(sink, committables, incarnation=2)
    assert contents(tmp_path) == {
        "city=Oslo/day=1": ["('city=Oslo/day=1', 1)\n('city=Oslo/day=1', 3)\n"],
        "city=Rome": ["('city=Rome', 2)\n"],
        "": ["('', 4)\n"],
    }


def test_a_sweep_finds_the_unfinished_files_of_all_buckets(tmp_path: Path, clock: Clock) -> None:
    sink = builder(tmp_path).with_bucket_assigner(ByCity()).build()
    writer_of(sink, clock).write([(f"b/{n}", n) for n in range(5)])
    assert len(files_below(str(tmp_path))) == 5
    sink.create_committer(CommitterContext("job", "sink", 2)).sweep([])
    assert files_below(str(tmp_path)) == []


def test_date_buckets_follow_the_clock(tmp_path: Path, clock: Clock) -> None:
    assigner = BucketAssigner.date_time_bucket_assigner(timezone_id="UTC")
    sink = builder(tmp_path).with_bucket_assigner(assigner).build()
    writer = writer_of(sink, clock)
    for value in "ab":
        writer.write([value])
        clock.ms += 3_600_000
    commit(sink, writer.prepare_commit())
    assert contents(tmp_path) == {"2001-09-09--01": ["a\n"], "2001-09-09--02": ["b\n"]}


def test_more_buckets_than_files_may_be_open_are_no_problem(tmp_path: Path, clock: Clock) -> None:
    sink = builder(tmp_path).with_bucket_assigner(ByCity()).build()
    writer = writer_of(sink, clock)
    for _ in range(2):
        writer.write([(f"b{n}", n) for n in range(MAX_OPEN + 10)])
    commit(sink, writer.prepare_commit())
    found = contents(tmp_path)
    assert len(found) == MAX_OPEN + 10
    assert all("".join(files) == f"('{bucket}', {bucket[1:]})\n" * 2 for bucket, files in found.items())


@pytest.mark.parametrize("bucket", ["/etc", "../up", "a//b", "a/../b", ".hidden", "a/.b", "a/", "\0"])
def test_a_bucket_outside_of_the_base_path_is_refused(tmp_path: Path, clock: Clock, bucket: str) -> None:
    writer = writer_of(builder(tmp_path).with_bucket_assigner(ByCity()).build(), clock)
    with pytest.raises(ConfigurationError, match="cannot be a bucket"):
        writer.write([(bucket, 1)])
    writer.close()
    assert files_below(str(tmp_path)) == []


def test_a_bucket_that_is_a_file_is_an_error_that_names_it(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "b").write_text("a file")
    sink = builder(tmp_path).with_bucket_assigner(ByCity()).build()
    writer = writer_of(sink, clock)
    writer.write([("b", 1)])
    with pytest.raises(CheckpointError, match=r"cannot be renamed to .*Not a directory"):
        commit(sink, writer.prepare_commit())


# ---- dates as Java writes them


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd--HH", "2024-03-07--15"),
        ("yy/M/d", "24/3/7"),
        ("'dt='yyyyMMdd'T'HHmmss.SSS", "dt=20240307T150402.056"),
        ("EEE d MMM uuuu h a", "Thu 7 Mar 2024 3 PM"),
        ("EEEE MMMM D k 'o''clock' ''", "Thursday March 67 15 o'clock '"),
        ("yyyy/DDD", "2024/067"),
    ],
)
def test_java_date_patterns_mean_what_they_mean_there(pattern: str, text: str) -> None:
    assert DatePattern(pattern).format(datetime.datetime(2024, 3, 7, 15, 4, 2, 56_789)) == text


@given(st.datetimes(datetime.datetime(1900, 1, 1)))
def test_date_patterns_agree_with_strftime(moment: datetime.datetime) -> None:
    assert DatePattern("yyyy-MM-dd--HH mm:ss.SSSSSS DDD").format(moment) == moment.strftime("%Y-%m-%d--%H %M:%S.%f %j")


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd G", "YYYY", "yyyy'x", "b"])
def test_patterns_that_are_not_known_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigurationError, match="date pattern"):
        DateTimeBucketAssigner(pattern)


@pytest.mark.parametrize(
    ("name", "hours"), [("UTC", 0), ("Z", 0), ("GMT-08:00", -8), ("+0530", 5.5), ("UTC+2", 2), ("Asia/Tokyo", 9)]
)
def test_time_zones_have_javas_names(name: str, hours: float) -> None:
    zone = time_zone(name)
    assert zone is not None
    assert zone.utcoffset(datetime.datetime(2024, 1, 1)) == datetime.timedelta(hours=hours)


def test_without_a_time_zone_it_is_the_machines(clock: Clock) -> None:
    bucket = DateTimeBucketAssigner().get_bucket_id(None, BucketAssigner.Context(clock))
    assert bucket == time.strftime("%Y-%m-%d--%H", time.localtime(clock.ms / 1000))


def test_a_time_zone_that_is_none_is_refused() -> None:
    for name in ("Atlantis/Capital", "GMT+99", "../etc/passwd"):
        with pytest.raises(ConfigurationError, match="no time zone"):
            BucketAssigner.date_time_bucket_assigner(timezone_id=name)


# ---- less than exactly once


@pytest.mark.parametrize("guarantee", [DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.NONE])
def test_with_less_than_exactly_once_files_appear_when_they_end(
    tmp_path: Path, clock: Clock, guarantee: DeliveryGuarantee
) -> None:
    policy = RollingPolicy.default_rolling_policy(part_size=4)
    base = builder(tmp_path).with_rolling_policy(policy).with_bucket_assigner(ByCity())
    sink = base.with_delivery_guarantee(guarantee).build()
    assert sink.guarantee is guarantee
    writer = writer_of(sink, clock)
    for number in range(2):
        writer.write([("b", number)])
    assert contents(tmp_path) == {"b": ["('b', 0)\n"]}
    assert writer.prepare_commit() == []
    assert contents(tmp_path) == {"b": ["('b', 0)\n", "('b', 1)\n"]}
    writer.write([("b", 2)])
    writer.close()  # a rollback: the record comes again
    assert len(files_below(str(tmp_path))) == 2


def test_at_least_once_waits_for_the_disk_and_none_does_not(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    counts = {}
    for guarantee in (DeliveryGuarantee.AT_LEAST_ONCE, DeliveryGuarantee.NONE):
        synced.clear()
        writer = writer_of(builder(tmp_path / guarantee.name).with_delivery_guarantee(guarantee).build(), clock)
        writer.write(["a"])
        writer.prepare_commit()
        counts[guarantee.name] = len(synced)
    assert counts["AT_LEAST_ONCE"] >= 2  # the file, and its directory
    assert counts["NONE"] == 0


def test_what_a_killed_slot_left_is_swept_whatever_is_promised(tmp_path: Path, clock: Clock) -> None:
    sink = builder(tmp_path).with_delivery_guarantee(DeliveryGuarantee.NONE).build()
    writer_of(sink, clock).write(["a"])
    sink.create_committer(CommitterContext("job", "sink", 2)).sweep([])
    assert files_below(str(tmp_path)) == []


# ---- settings


def test_compaction_is_refused_with_a_way_out(tmp_path: Path) -> None:
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).set_size_threshold(10).build()
    assert strategy == FileCompactStrategy(3, 10, 1)
    for compactor in (FileCompactor.concat_file_compactor(b"\n"), FileCompactor.identical_file_compactor()):
        with pytest.raises(ConfigurationError, match="longer checkpoint interval"):
            builder(tmp_path).enable_compact(strategy, compactor)
    assert isinstance(builder(tmp_path).disable_compact().build(), FileSink)


def test_settings_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    wrong: Any = "wrong"
    base: Any = builder(tmp_path)
    for method in (
        base.with_rolling_policy,
        base.with_bucket_assigner,
        base.with_output_file_config,
        base.with_delivery_guarantee,
        base.with_bucket_check_interval,
    ):
        with pytest.raises(ConfigurationError):
            method(wrong)
    with pytest.raises(ConfigurationError, match="BulkWriterFactory"):
        FileSink.for_bulk_format(str(tmp_path), wrong)
    for name in ("part_size", "rollover_interval", "inactivity_interval"):
        with pytest.raises(ConfigurationError, match=name):
            RollingPolicy.default_rolling_policy(**{name: 0})


def test_the_name_of_flink_1_is_known_and_warns(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="FileSink"):
        old = StreamingFileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()
    assert isinstance(old, FileSink)
