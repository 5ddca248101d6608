"""Sums of 10 s windows as a bytewax dataflow, run by bytewax_windows.py.

READINGS is the directory of the two files, RESULTS one for results, WINDOW_MS the length of windows. Its clock stands still
and waits for more than the data covers, so that no record is late, however far one process is ahead of the other; windows
close at the end of the input.
"""

import glob
import os
import time
import uuid
from datetime import datetime, timedelta, timezone

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition

BATCH = 5000
WINDOW_MS = int(os.environ["WINDOW_MS"])
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)


class FileReader(StatefulSourcePartition):
    """Pairs of a key and its record."""

    def __init__(self, path):
        self.rows = self.read(pq.ParquetFile(path))

    def read(self, file):
        print("started", time.monotonic(), flush=True)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            for batch in table.to_batches(max_chunksize=BATCH):
                yield [(row[0], row) for row in zip(*(column.to_pylist() for column in batch.columns))]  # noqa: B905

    def next_batch(self):
        return next(self.rows)

    def snapshot(self):
        return None


class Files(FixedPartitionedSource):
    def list_parts(self):
        return sorted(glob.glob(os.environ["READINGS"] + "/*.parquet"))

    def build_part(self, step_id, path, resume):
        return FileReader(path)


class Lines(DynamicSink):
    def build(self, step_id, index, count):
        return LinesPart()


class LinesPart(StatelessSinkPartition):
    def __init__(self):
        self.file = open(os.path.join(os.environ["RESULTS"], uuid.uuid4().hex), "w")  # noqa: SIM115  closed in close()

    def write_batch(self, items):
        for key, (window, total) in items:
            self.file.write(f"{key} {window * WINDOW_MS} {total}\n")

    def close(self):
        self.file.close()


clock = win.EventClock(
    ts_getter=lambda row: EPOCH + row[2] * MILLISECOND,
    wait_for_system_duration=timedelta(days=1),
    now_getter=lambda: EPOCH,
    to_system_utc=lambda _: None,
)
flow = Dataflow("windows")
sums = win.fold_window(
    "sums",
    op.input("readings", flow, Files()),
    clock,
    win.TumblingWindower(length=WINDOW_MS * MILLISECOND, align_to=EPOCH),
    builder=lambda: 0,
    folder=lambda total, row: total + row[1],
    merger=lambda a, b: a + b,
    ordered=False,
)
op.output("lines", sums.down, Lines())
