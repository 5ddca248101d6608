"""The limit: two plain processes, the same files, the same function over a dict. `python -m bench.peers.bare_loop DIR`

Nothing is shuffled and nothing is durable: each process keeps all keys of its own files. The pool is started before the
clock.
"""

import gc
import glob
import json
import multiprocessing
import sys
import time

import pyarrow.parquet as pq


class ValueState:
    __slots__ = ("dirty", "key", "values")

    def __init__(self):
        self.values, self.key, self.dirty = {}, None, set()

    def value(self):
        return self.values.get(self.key)

    def update(self, value):
        self.values[self.key] = value
        self.dirty.add(self.key)


class Alert:
    def __init__(self, last):
        self.last = last

    def process_element(self, row, ctx):
        old, temp = self.last.value(), row[1]
        if old is not None and abs(temp - old) > 60:
            yield row[0], temp, abs(temp - old)
        self.last.update(temp)


def work(files):
    gc.disable()
    state, count, out = ValueState(), 0, []
    process = Alert(state).process_element
    for name in files:
        for batch in pq.read_table(name, columns=["id", "temp"]).to_batches(max_chunksize=20000):
            for row in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=False):
                state.key = row[0]
                out.extend(process(row, None))
            count += batch.num_rows
    return count, len(out)


if __name__ == "__main__":
    names = sorted(glob.glob(f"{sys.argv[1]}/*.parquet"))
    with multiprocessing.Pool(2) as pool:
        started = time.monotonic()
        results = pool.map(work, [names[::2], names[1::2]])
        seconds = time.monotonic() - started
    records = sum(count for count, _ in results)
    alerts = sum(made for _, made in results)
    print(json.dumps({"records": records, "alerts": alerts, "per_s": records / seconds}))
