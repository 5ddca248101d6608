"""One workload of the `states` part in a bare loop: `python -m bench.peers.bare_states WORKLOAD RECORDS`

Two plain processes, the same files, the same functions over dicts. Nothing is shuffled (a key is in one file only) and
nothing is durable. The pool is started before the clock, and the results are digested after it.
"""

import gc
import json
import multiprocessing
import sys
import time
from heapq import heappop, heappush

import pyarrow.parquet as pq

from bench.workloads import HALVES, OUT_OF_ORDER_MS, WORKLOADS, Ts, digest

BATCH = 20_000
WATERMARK_RECORDS = 4096  # as often as Firesteel
END_OF_TIME = 2**63 - 1


class ValueState:
    __slots__ = ("dirty", "place", "values")

    def __init__(self, place):
        self.values, self.place, self.dirty = {}, place, set()

    def value(self):
        return self.values.get(self.place.key)

    def update(self, value):
        self.values[self.place.key] = value
        self.dirty.add(self.place.key)


class ListState(ValueState):
    __slots__ = ()

    def get(self):
        return self.values.get(self.place.key, ())

    def add(self, element):
        key = self.place.key
        found = self.values.get(key)
        if found is None:
            self.values[key] = [element]
        else:
            found.append(element)
        self.dirty.add(key)

    def clear(self):
        self.values.pop(self.place.key, None)
        self.dirty.add(self.place.key)


class MapState(ValueState):
    __slots__ = ()

    def get(self, entry):
        found = self.values.get(self.place.key)
        return None if found is None else found.get(entry)

    def put(self, entry, value):
        key = self.place.key
        found = self.values.get(key)
        if found is None:
            self.values[key] = {entry: value}
        else:
            found[entry] = value
        self.dirty.add(key)


class Place:
    """The current key and time; also the runtime context, the function's context and the timer service."""

    __slots__ = ("due", "heap", "key", "time")

    def __init__(self):
        self.key = self.time = None
        self.due, self.heap = {}, []  # time -> keys, in a dict because their order counts; and the times

    def get_state(self, descriptor):
        return ValueState(self)

    def get_list_state(self, descriptor):
        return ListState(self)

    def get_map_state(self, descriptor):
        return MapState(self)

    def get_current_key(self):
        return self.key

    def timestamp(self):
        return self.time

    def timer_service(self):
        return self

    def register_event_time_timer(self, time):
        keys = self.due.get(time)
        if keys is None:
            self.due[time] = {self.key: None}
            heappush(self.heap, time)
        else:
            keys[self.key] = None


def process(batches, place, function, keep):
    """The methods of a function take turns, as the streams' batches do."""
    count, out = 0, []
    for batch, call in batches(methods(function)):
        for row in rows(batch):
            place.key = row[0]
            out.extend(call(row, place))
        count += batch.num_rows
    return count, len(out), out


def roll(batches, place, function, keep):
    count, sums, dirty, out = 0, {}, set(), []
    for batch, _ in batches([None]):
        for row in rows(batch):
            key = row[0]
            before = sums.get(key)
            result = row if before is None else add(before, row)
            sums[key] = result
            dirty.add(key)
            if keep(result):
                out.append(result)
        count += batch.num_rows
    return count, count, out


def add(before, row):
    return before[0], before[1] + row[1]


def process_in_time(batches, place, function, keep):
    count, made, out = 0, 0, []
    highest, until_watermark = 0, WATERMARK_RECORDS
    call, on_timer, extract = function.process_element, function.on_timer, Ts().extract_timestamp

    def advance(watermark):
        made = 0
        heap, due = place.heap, place.due
        while heap and heap[0] <= watermark:
            place.time = heappop(heap)
            for key in due.pop(place.time):
                place.key = key
                for result in on_timer(place.time, place):
                    made += 1
                    if keep(result):
                        out.append(result)
        return made

    for batch, _ in batches([None]):
        for row in rows(batch):
            place.key = row[0]
            place.time = timestamp = extract(row, -1)
            if timestamp > highest:
                highest = timestamp
            call(row, place)
            until_watermark -= 1
            if until_watermark == 0:
                made += advance(highest - OUT_OF_ORDER_MS - 1)
                until_watermark = WATERMARK_RECORDS
        count += batch.num_rows
    return count, made + advance(END_OF_TIME), out


def methods(function):
    if hasattr(function, "process_element"):
        return [function.process_element]
    return [function.process_element1, function.process_element2]


def rows(batch):
    return zip(*[column.to_pylist() for column in batch.columns], strict=True)


def read(name, columns):
    file = pq.ParquetFile(name)
    for group in range(file.num_row_groups):
        yield from file.read_row_group(group, columns=columns, use_threads=False).to_batches(max_chunksize=BATCH)


def work(name, records, half):
    gc.disable()
    workload, place = WORKLOADS[name], Place()
    files = [numbers.names()[half] for numbers in workload.data(records)]

    def batches(calls):
        """One batch of each stream in turn, with the method that takes it."""
        for of_streams in zip(*[read(file, list(workload.columns)) for file in files], strict=True):
            yield from zip(of_streams, calls, strict=True)

    function = None if workload.function is None else workload.function()
    if function is not None:
        function.open(place)
    loop = roll if function is None else process_in_time if "ts" in workload.columns else process
    return loop(batches, place, function, workload.keep)


def measured(name, records, half):
    """When it was done, and what it made."""
    count, made, out = work(name, records, half)
    return time.monotonic(), count, made, digest(map(str, out))


def run(name, records):
    for numbers in WORKLOADS[name].data(records):
        numbers.make()
    with multiprocessing.Pool(HALVES) as pool:
        started = time.monotonic()
        results = pool.starmap(measured, [(name, records, half) for half in range(HALVES)], chunksize=1)
    ended, counts, mades, digests = zip(*results, strict=True)
    return {
        "records": sum(counts),
        "made": sum(mades),
        "count": sum(each["count"] for each in digests),
        "checksum": sum(each["checksum"] for each in digests) % 2**64,
        "per_s": sum(counts) / (max(ended) - started),
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]))))
