"""State in RocksDB, in slots that are processes of their own and are killed."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firesteel.common import Encoder, Types, crashpoints
from firesteel.coordinator.lineage import JobDirectory
from firesteel.datastream import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    KeyedProcessFunction,
    MapFunction,
    RocksDBStateBackend,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from firesteel.state.chains import native_part

RECORDS = 30_000
KEYS = 500


class EveryKindOfState(KeyedProcessFunction):
    """Gives (key, how many values, their sum, how many kinds of values, how many of the last hundred)."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.PICKLED_BYTE_ARRAY()))
        self.kinds = runtime_context.get_map_state(MapStateDescriptor("kinds", Types.INT(), Types.INT()))
        self.last = runtime_context.get_list_state(ListStateDescriptor("last", Types.INT()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count, total = self.total.value() or (0, 0)
        self.total.update((count + 1, total + value))
        kind = value % 7
        self.kinds.put(kind, (self.kinds.get(kind) or 0) + 1)
        self.last.add(value)
        if (count + 1) % 20 == 0:
            assert sum(self.last.get()) > 0
            self.last.clear()
        if count + 1 == RECORDS // KEYS:
            yield ctx.get_current_key(), count + 1, total + value, sum(self.kinds.values()), len(list(self.last.get()))


class DiesOnce(MapFunction):
    """By itself, or at a crash point of its slot."""

    def __init__(self, marker: str, crash: str | None) -> None:
        self.marker, self.crash = marker, crash

    def open(self, runtime_context: RuntimeContext) -> None:
        if self.crash is not None:
            os.environ["FIRESTEEL_CRASH_ONCE"] = self.marker
            crashpoints._armed = self.crash

    def map(self, value: int) -> int:
        if self.crash is None and value > RECORDS * 2 // 3 and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return value


def _run(env: StreamExecutionEnvironment, tmp_path: Path, crash: str | None) -> Counter[str]:
    env.enable_checkpointing(50)
    env.set_epoch_target_duration(100)
    numbers = env.from_sequence(1, RECORDS).map(DiesOnce(str(tmp_path / "killed once"), crash))
    results = numbers.key_by(lambda n: n % KEYS).process(EveryKindOfState()).map(str)
    results.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
    env.execute_async("job").get_job_execution_result().result(timeout=240)
    return Counter(line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines())


def _expected() -> Counter[str]:
    found = []
    for key in range(KEYS):
        values = [value for value in range(1, RECORDS + 1) if value % KEYS == key]
        found.append(str((key, len(values), sum(values), len(values), len(values) % 20)))
    return Counter(found)


@pytest.mark.parametrize("crash", [None, "slot-mid-upload:3", "rocksdb-written:20"])
def test_a_job_whose_slot_is_killed_loses_and_repeats_nothing(
    crash: str | None, env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    local = tmp_path / "local"
    backend = RocksDBStateBackend(str(tmp_path / "checkpoints"), True)
    backend.set_db_storage_paths(str(local))
    env.set_state_backend(backend)
    env.set_rocksdb_option("memory", 1 << 20)  # so that most of it is not in memory
    assert _run(env, tmp_path, crash) == _expected()
    assert (tmp_path / "killed once").exists()
    newest = JobDirectory.open(str(tmp_path / "checkpoints"), "job").latest()
    assert newest is not None and newest.metadata.final and newest.problem() is None
    assert all(native_part(chain) for chain in newest.metadata.state)
    assert list(local.iterdir()) == []


def test_a_job_goes_on_with_the_other_backend(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    """Half of the input with one, the rest with the other, which is the same state in other files."""
    results: Counter[str] = Counter()
    for number, backend in enumerate([HashMapStateBackend(), EmbeddedRocksDBStateBackend(), HashMapStateBackend()]):
        again = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
        again.set_state_backend(backend)
        again.enable_checkpointing(100).get_checkpoint_config().set_checkpoint_storage_dir(
            str(tmp_path / "checkpoints")
        )
        path = tmp_path / "in"
        path.mkdir(exist_ok=True)
        step = RECORDS // 3
        (path / f"{number}.txt").write_text(
            "".join(f"{n}\n" for n in range(number * step + 1, (number + 1) * step + 1))
        )
        numbers = again.read_text_file(str(path)).map(int)
        totals = numbers.key_by(lambda n: n % KEYS).process(EveryKindOfState()).map(str)
        totals.sink_to(FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder()).build())
        again.execute("switching")
    for file in (tmp_path / "out").iterdir():
        results.update(file.read_text().splitlines())
    assert results == _expected()
