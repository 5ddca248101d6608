"""The same sums in Python on Spark, with applyInPandasWithState: `python -m bench.peers.spark_pandas_windows RECORDS KEYS`

Spark's other way in Python, transformWithState, has a round trip to the JVM for every access to state; here state comes and
goes with a key's rows. Micro-batches and which of them count are as in spark_windows.py; results are given out when windows
time out, in the last batch, which is not counted.
"""

import json
import sys
import tempfile

import pandas as pd
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupStateTimeout

from bench.peers.spark_windows import finished, source
from bench.peers.transform_with_state import session
from bench.windows import WINDOW_MS, Readings


def add_up(key, frames, state):
    """A group is a key in one window. What is kept is its sum."""
    if state.hasTimedOut:
        yield pd.DataFrame({"id": [key[0]], "start": [key[1]], "total": [state.get[0]]})
        state.remove()
        return
    total = state.get[0] if state.exists else 0
    for frame in frames:
        total += int(frame["number"].sum())
    state.update((total,))
    state.setTimeoutTimestamp(int(key[1]) + WINDOW_MS)


def run(readings):
    rows = source(readings).withColumn("start", f.expr(f"ts - pmod(ts, {WINDOW_MS})"))
    sums = rows.groupBy("id", "start").applyInPandasWithState(
        add_up, "id string, start long, total long", "total long", "append", GroupStateTimeout.EventTimeTimeout
    )
    return finished(sums, readings, tempfile.mkdtemp())


if __name__ == "__main__":
    result = run(Readings(*map(int, sys.argv[1:3])).make())
    session().stop()
    print(json.dumps(result))
