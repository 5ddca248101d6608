"""Jobs whose state and output tell how far they were read, and which a savepoint has to agree with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from firesteel.common import Duration, Encoder, Types, WatermarkStrategy
from firesteel.common.watermark_strategy import TimestampAssigner
from firesteel.coordinator.completed import Completed, locate
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.graph.nodes import Collect
from firesteel.graph.settings import StartSettings
from firesteel.state.files import StateFile
from tests.support.slicing import Sliced

KEYS = 3
ENDLESS = 10**12


def program(
    start_from: str | None = None, *, interval: int | None = 1, out: Path | None = None, uid: str = "totals"
) -> StreamExecutionEnvironment:
    """Numbers, summed by key, without end."""
    env = StreamExecutionEnvironment().set_parallelism(2)
    if interval is not None:
        env.enable_checkpointing(interval)
    env.start = StartSettings(start_from)
    numbers = env.from_source(Sliced(NumberSequenceSource(1, ENDLESS), 50), source_name="numbers").uid("numbers")
    totals = numbers.key_by(lambda n: n % KEYS).reduce(lambda a, b: a + b).uid(uid)
    if out is None:
        totals._end(Collect(), "Collect")
    else:
        totals.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def totals_in(savepoint: str, uid: str = "totals") -> dict[int, int]:
    found: dict[int, int] = {}
    at = locate(savepoint)
    for chain in at.metadata.state:
        for handle in chain:
            with StateFile(handle["file"], handle["checksum"], at.storage) as file:
                for delta in file.deltas():
                    if delta.uid == uid and delta.kind == "value":
                        found.update(zip(delta.keys, delta.values, strict=True))
    return found


def check_consistent(savepoint: str) -> None:
    """State is that of exactly the numbers before its position."""
    assert totals_in(savepoint) == NumbersRead(locate(savepoint)).totals()


class NumbersRead:
    """Which numbers had been read: those between what is left."""

    def __init__(self, savepoint: Completed) -> None:
        self.left = [tuple(pair) for pair in savepoint.metadata.positions["numbers"]["left"]]

    def ranges(self) -> list[range]:
        starts = [1, *(end for _, end in self.left)]
        return [range(start, pair[0]) for start, pair in zip(starts, self.left, strict=False)]

    def totals(self) -> dict[int, int]:
        sums = Counter[int]()
        for numbers in self.ranges():
            for number in numbers:
                sums[number % KEYS] += number
        return dict(sums)


def written(out: Path) -> Counter[int]:
    return Counter(
        int(line) for file in out.rglob("part-*") if file.is_file() for line in file.read_text().splitlines()
    )


class _Seconds(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value * 1000


def windowed(out: Path, start_from: str | None, last: int, size: int = 7) -> StreamExecutionEnvironment:
    """Numbers as seconds, counted in windows of an hour."""
    env = StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(1)
    env.start = StartSettings(start_from)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(_Seconds())
    numbers = env.from_source(Sliced(NumberSequenceSource(0, last), size), strategy, "numbers").uid("numbers")
    counts = (
        numbers.map(lambda n: (n % 2, 1))
        .key_by(lambda pair: pair[0])
        .window(TumblingEventTimeWindows.of(Duration.of_hours(1)))
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .uid("windows")
    )
    lines = counts.map(lambda pair: f"{pair[0]} {pair[1]}", Types.STRING())
    lines.sink_to(FileSink.for_row_format(str(out), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def lines(out: Path) -> list[str]:
    return sorted(line for file in out.rglob("part-*") if file.is_file() for line in file.read_text().splitlines())
