"""The same sums by Spark's own streaming aggregation: `python -m bench.peers.spark_windows RECORDS KEYS`

Each micro-batch is a slice of time of both halves; the first one pays for start-up and is not counted, and neither is the
last one, a record from far in the future that ends all windows. Everything runs in the JVM: no Python touches a record.
"""

import json
import sys
import tempfile

from pyspark.sql import functions as f

from bench.peers.transform_with_state import session
from bench.windows import WINDOW_MS, Readings, line
from bench.workloads import OUT_OF_ORDER_MS, digest


def source(readings):
    """The rows, with `time` as event time."""
    stream = session().readStream.schema("id string, number long, ts long").option("maxFilesPerTrigger", 2)
    rows = stream.parquet(str(readings.directory / "sliced")).withColumn("time", f.timestamp_millis("ts"))
    return rows.withWatermark("time", f"{2 * OUT_OF_ORDER_MS} milliseconds")


def finished(sums, readings, out):
    """Run a query over those rows and check its sums."""
    writer = sums.writeStream.format("parquet").outputMode("append").option("checkpointLocation", tempfile.mkdtemp())
    query = writer.trigger(availableNow=True).start(out)
    query.awaitTermination()
    table = session().read.parquet(out).filter("id != 'closing'").collect()
    found = digest(line(*row) for row in table)
    if found != readings.expected():
        sys.exit(f"wrong output: {found} instead of {readings.expected()}")
    warm = [p for p in query.recentProgress if p.numInputRows > 1][1:]
    return {"per_s": sum(p.numInputRows for p in warm) / sum(p.durationMs["triggerExecution"] for p in warm) * 1000}


def run(readings):
    windows = source(readings).groupBy("id", f.window("time", f"{WINDOW_MS} milliseconds"))
    sums = windows.agg(f.sum("number").alias("total")).select(
        "id", f.unix_millis("window.start").alias("start"), "total"
    )
    return finished(sums, readings, tempfile.mkdtemp())


if __name__ == "__main__":
    print(json.dumps(run(Readings(*map(int, sys.argv[1:3])).make())))
