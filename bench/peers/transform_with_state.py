"""Spark's transformWithState in Python, state touched per record or once per key and batch.

`python -m bench.peers.transform_with_state files DIR record|key`: the files of DIR, one per micro-batch, in the order of
their modification times. The first batch pays for start-up and is not counted.

`python -m bench.peers.transform_with_state batches COUNT RECORDS KEYS`: COUNT micro-batches of RECORDS generated records
each, one after the other; how long each of them took.
"""

import json
import os
import sys
import tempfile
import time

os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import DoubleType, StructField, StructType

from bench.readings import KEY_FACTOR, TEMP_FACTOR


class PerRecord(StatefulProcessor):
    """State is read and written for every record, as the workload asks."""

    def init(self, handle):
        self.last = handle.getValueState("last", StructType([StructField("t", DoubleType())]))

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            old = self.last.get()
            if old is not None and abs(row.temp - old[0]) > 60:
                yield Row(id=key[0], temp=row.temp, diff=abs(row.temp - old[0]))
            self.last.update((row.temp,))

    def close(self):
        pass


class PerKey(PerRecord):
    """State is read and written once per key and batch: the way around the round trips."""

    def handleInputRows(self, key, rows, timerValues):
        old = self.last.get()
        last = old[0] if old is not None else None
        for row in rows:
            if last is not None and abs(row.temp - last) > 60:
                yield Row(id=key[0], temp=row.temp, diff=abs(row.temp - last))
            last = row.temp
        self.last.update((last,))


def session():
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config(
            "spark.sql.streaming.stateStore.providerClass",
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        )
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .config("spark.sql.streaming.numRecentProgressUpdates", "100000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def writer(readings, processor):
    alerts = readings.groupBy("id").transformWithState(
        processor, "id string, temp double, diff double", "Append", "None"
    )
    return alerts.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp())


def files(directory, touch):
    source = session().readStream.schema("id string, temp double").option("maxFilesPerTrigger", 1).parquet(directory)
    query = writer(source, PerRecord() if touch == "record" else PerKey()).trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [p for p in query.recentProgress if p.numInputRows]
    warm = progress[1:]
    rows, ms = sum(p.numInputRows for p in warm), sum(p.durationMs["triggerExecution"] for p in warm)
    return {
        "records": sum(p.numInputRows for p in progress),
        "keys": progress[-1].stateOperators[0].numRowsTotal,
        "per_s": rows / ms * 1000,
    }


def batches(count, records, keys):
    source = (
        session()
        .readStream.format("rate-micro-batch")
        .option("rowsPerBatch", records)
        .option("numPartitions", 2)
        .load()
        .selectExpr(
            f"concat('sensor_', (value * {KEY_FACTOR}) % {keys}) AS id",
            f"20 + ((value * {TEMP_FACTOR}) % 1000) * 0.08D AS temp",
        )
    )
    query = writer(source, PerRecord()).trigger(processingTime="0 seconds").start()
    while query.isActive and (query.lastProgress is None or query.lastProgress.batchId < count):
        time.sleep(0.5)  # asking for all progress, or more often, would slow it down
    if query.exception() is not None:
        raise query.exception()
    progress = query.recentProgress[:count]
    query.stop()
    return {
        "records": [p.numInputRows for p in progress],
        "seconds": [p.durationMs["triggerExecution"] / 1000 for p in progress],
    }


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    result = files(*arguments) if kind == "files" else batches(*map(int, arguments))
    session().stop()
    print(json.dumps(result))
