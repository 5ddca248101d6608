"""A small job whose driver can be killed: python -m tests.support.storage_job <checkpoints> <directory of its output>."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from firesteel.common import Encoder, RestartStrategies
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from tests.support.local_engine import LocalRun
from tests.support.slicing import Sliced

RECORDS = 40_000


def program(root: Path) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2).enable_checkpointing(5)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 0))
    numbers = env.from_source(Sliced(NumberSequenceSource(1, RECORDS), 1000), source_name="numbers")
    totals = numbers.key_by(lambda n: n % 100).reduce(lambda a, b: a + b).uid("totals")
    totals.sink_to(FileSink.for_row_format(str(root / "out"), Encoder.simple_string_encoder()).build()).uid("files")
    return env


def check_output(root: Path) -> None:
    """Every record is in the output exactly once."""
    files = list((root / "out").iterdir())
    assert not [file.name for file in files if file.name.startswith(".")]
    output = Counter(int(line) for file in files for line in file.read_text().splitlines())
    assert sum(output.values()) == RECORDS
    finals = {remainder: sum(range(remainder or 100, RECORDS + 1, 100)) for remainder in range(100)}
    assert all(output[total] >= 1 for total in finals.values())


if __name__ == "__main__":
    LocalRun(program(Path(sys.argv[2])), sys.argv[1]).in_step().run()
