"""The parts of the benchmark: which programs each one repeats, and the figures it makes of their answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from bench.backend_part import Backends
from bench.figures import Figure, percentile
from bench.kafka_part import Kafka
from bench.part import Part
from bench.programs import ProgramError, run
from bench.savepoint_part import Savepoints
from bench.window_part import Windows
from bench.workloads import WORKLOADS

TRANSFORM = "bench.peers.transform_with_state"


def ratio(name: str, over: Figure, under: Figure, target: float, *, at_least: bool = True) -> Figure:
    return Figure(name, over.value / under.value, "", target, at_least)


class Throughput(Part):
    """Keyed updates per second against the bare loop and transformWithState."""

    name = "throughput"

    def prepare(self) -> None:
        size, events = self.size, self.size.events.make()
        events.expected()
        self._by_record = events.batches(size.warm_up, size.per_record)
        self._by_key = events.batches(size.warm_up, size.per_key)
        run("bench.keyed", events.records, events.keys, events.files, "in-order")  # it checks every single alert

    def repeat(self, repetition: int) -> None:
        size, events = self.size, self.size.events
        bare = self.keep("bare", run("bench.peers.bare_loop", events.directory))
        if (bare["records"], bare["alerts"]) != (events.records, self.answers["bare"][0]["alerts"]):
            raise ProgramError(f"the bare loop made {bare['alerts']} alerts of {bare['records']} records")
        self.keep("firesteel", run("bench.keyed", events.records, events.keys, events.files))
        if repetition < size.slow_repetitions:
            self._transform(self._by_record, "record", size.warm_up + size.per_record)
            self._transform(self._by_key, "key", size.warm_up + size.per_key)

    def _transform(self, directory: object, touch: str, records: int) -> None:
        answer = self.keep(touch, run(TRANSFORM, "files", directory, touch))
        keys = self.size.events.distinct_keys(records)
        if (answer["records"], answer["keys"]) != (records, keys):
            raise ProgramError(
                f"transformWithState read {answer['records']} records of {answer['keys']} keys, not {records} of {keys}"
            )

    def figures(self) -> Iterator[Figure]:
        bare = self.median("bare loop", "bare", "per_s", "records/s")
        ours = self.median("firesteel: keyed updates", "firesteel", "per_s", "records/s")
        record = self.median("transformWithState per record", "record", "per_s", "records/s")
        key = self.median("transformWithState per key", "key", "per_s", "records/s")
        yield from (bare, ours, record, key)
        yield self.median("firesteel with start-up and end", "firesteel", "per_s_with_start", "records/s")
        yield ratio("firesteel / bare loop", ours, bare, 0.45)
        yield ratio("firesteel / transformWithState per record", ours, record, 75)
        yield Figure("firesteel / transformWithState per key", ours.value / key.value)
        yield self.median("firesteel: memory per slot, highest", "firesteel", "rss", "MB", 1e-6)
        yield self.median("firesteel: checkpoints in a run", "firesteel", "checkpoints", "")

    def notes(self) -> Iterator[str]:
        size, events = self.size, self.size.events
        yield (
            f"Keyed updates: {events.records:,} records, {events.keys:,} keys, {events.files} files; a checkpoint every "
            "second; alerts written exactly once."
        )
        yield (
            "All rates are warm: firesteel without its first epoch (20,000 records), up to the job's end (final checkpoint "
            f"committed, slots stopped); transformWithState without its first batch ({size.warm_up:,} records); the bare "
            "loop's pool is started before the clock."
        )
        yield (
            f"transformWithState: one batch of {size.per_record:,} records with state touched per record, one of "
            f"{size.per_key:,} with state touched per key (large batches favour it); {self.fewer()}. Records read and number "
            "of keys checked."
        )
        yield (
            "Output: every alert compared with a plain loop's in a run that reads the files in order; in timed runs, where "
            "two files are read at a time, record and alert counts, and that every alert is a true pair of readings."
        )


class States(Part):
    """Kinds of state, timers and two inputs, each against the same function in a bare loop."""

    name = "states"

    def repeat(self, repetition: int) -> None:
        if repetition >= self.size.slow_repetitions:
            return
        for name in WORKLOADS:
            bare = run("bench.peers.bare_states", name, self.size.states)
            ours = run("bench.states", name, self.size.states)
            self._compare(name, bare, ours)
            self.keep(f"bare {name}", bare)
            self.keep(name, {**ours, "ratio": ours["per_s"] / bare["per_s"]})

    def _compare(self, name: str, bare: dict[str, Any], ours: dict[str, Any]) -> None:
        fields = ("records", "made", "count", "checksum")
        expected, found = ({field: answer[field] for field in fields} for answer in (bare, ours))
        if expected["records"] != self.size.states or not expected["count"]:
            raise ProgramError(f"{name}: the bare loop gives {expected}, which proves nothing")
        if found != expected:
            raise ProgramError(f"{name}: firesteel gives {found}, the bare loop {expected}")

    def figures(self) -> Iterator[Figure]:
        for name in WORKLOADS:
            yield self.median(f"{name}: bare loop", f"bare {name}", "per_s", "records/s")
            yield self.median(f"{name}: firesteel", name, "per_s", "records/s")
            samples = self.samples(name, "ratio")
            yield Figure(f"{name}: firesteel / bare loop", median(samples), "", 0.35, samples=samples)

    def notes(self) -> Iterator[str]:
        yield (
            f"States: {self.size.states:,} records each, a checkpoint every second, rates as for keyed updates; the bare loop "
            "runs the same functions in two plain processes over dicts (timers: and a heap). A ratio is the median of each "
            f"repetition's own, as both ran within seconds; {self.size.slow_repetitions} repetitions. Number and checksum of "
            "all results must be equal."
        )
        yield (
            "map_state: get and put one of 1,000 entries of each of 100 keys; list_state: append, read and clear after about "
            "100 (10,000 keys); rolling_sum: key_by and sum (100,000 keys); timers: a record sets an event-time timer for its "
            "key, 9 in 10 are new, and all fire and emit (10,000 keys); connect: two streams, one value for both (100,000)."
        )


class Epochs(Part):
    """Small epochs against micro-batches."""

    name = "epochs"

    def repeat(self, repetition: int) -> None:
        size = self.size
        if repetition >= size.slow_repetitions:
            return
        keys = size.events.keys
        ours = run("bench.epochs", size.epochs, size.small, keys)
        self._keep("firesteel", ours["cycles"][size.first_epochs - 1 :])
        self._keep("job", ours["seconds"][size.first_epochs :])
        theirs = run(TRANSFORM, "batches", size.batches, size.small, keys)
        if set(theirs["records"]) != {size.small}:
            raise ProgramError(f"transformWithState's batches had {sorted(set(theirs['records']))} records")
        self._keep("batch", theirs["seconds"][size.first_batches :])

    def _keep(self, name: str, seconds: Sequence[float]) -> None:
        self.keep(name, {f"p{part}": percentile(seconds, part) for part in (50, 95)})

    def figures(self) -> Iterator[Figure]:
        epoch = self.median("firesteel: epoch p50", "firesteel", "p50", "ms", 1000)
        batch = self.median("transformWithState: micro-batch p50", "batch", "p50", "ms", 1000)
        yield epoch
        yield self.median("firesteel: epoch p95", "firesteel", "p95", "ms", 1000)
        yield self.median("firesteel: epoch's Spark job p50", "job", "p50", "ms", 1000)
        yield batch
        yield self.median("transformWithState: micro-batch p95", "batch", "p95", "ms", 1000)
        yield ratio("epoch p50 / micro-batch p50", epoch, batch, 0.5, at_least=False)

    def notes(self) -> Iterator[str]:
        size = self.size
        yield (
            f"Epochs: {size.small:,} generated records each over {size.events.keys:,} keys, one after the other, from one "
            f"epoch's end to the next one's (planning and barriers included, a checkpoint every second); "
            f"{size.epochs - size.first_epochs} epochs, {size.batches - size.first_batches} micro-batches "
            f"(triggerExecution, state touched per record), the first {size.first_epochs} and {size.first_batches} dropped; "
            f"{self.fewer()}."
        )


class Latency(Part):
    """From a record's creation to its output."""

    name = "latency"

    def repeat(self, repetition: int) -> None:
        size = self.size
        if repetition == 0:
            for kind in ("plain", "transactional"):
                self.keep(kind, run("bench.latency", kind, size.latency_s, size.latency_rate, size.events.keys))

    def figures(self) -> Iterator[Figure]:
        for kind, label in (("plain", "plain output"), ("transactional", "transactional output")):
            for part in ("p50", "p95", "p99"):
                yield self.median(f"latency to {label} {part}", kind, part, "ms", 1000)

    def notes(self) -> Iterator[str]:
        size = self.size
        yield (
            f"Latency: {size.latency_rate:,} records/s for {size.latency_s} s, the first quarter dropped, a checkpoint every "
            "second, one run. A record's age counts from when it is due, so waiting for an epoch is in it. Plain output "
            "leaves with its epoch, transactional output (FileSink) with its checkpoint."
        )


class Checkpoints(Part):
    """What checkpoints cost a job with large state of which little changes."""

    name = "checkpoints"

    def repeat(self, repetition: int) -> None:
        size = self.size
        if repetition >= size.slow_repetitions:
            return
        window = size.changes // 16  # of records among which so many keys change as in a second
        full = {
            mode: self._run("full" if mode == "off" else "restore", size.changes, window, mode)
            for mode in ("on", "off")
        }
        self.keep("full", {**full["on"], "ratio": full["on"]["per_s"] / full["off"]["per_s"]})
        self.keep("full, off", full["off"])
        rate = int(full["on"]["per_s"] / 2)
        paced = {mode: self._run("paced", rate * size.changes_s, rate, mode) for mode in ("on", "off")}
        self.keep("paced", {**paced["on"], "ratio": paced["on"]["epoch_p99"] / paced["off"]["epoch_p99"], "rate": rate})
        self.keep("paced, off", paced["off"])

    def _run(self, kind: str, records: int, rate: int, mode: str) -> dict[str, Any]:
        return run("bench.checkpoints", kind, self.size.state_keys, self.size.changed_keys, records, rate, mode)

    def figures(self) -> Iterator[Figure]:
        yield self.median("checkpoints: full rate", "full", "per_s", "records/s")
        yield self.median("checkpoints: full rate without them", "full, off", "per_s", "records/s")
        samples = self.samples("full", "ratio")
        yield Figure("checkpoints: full rate with / without", median(samples), "", 0.85, samples=samples)
        yield self.median("checkpoints: half of it, rate", "paced", "rate", "records/s")
        late = self.samples("paced", "late_s")
        yield Figure("checkpoints: behind at the end", median(late), "s", 2, False, samples=late)
        yield self.median("checkpoints: epoch p99", "paced", "epoch_p99", "ms", 1000)
        yield self.median("checkpoints: epoch p99 without them", "paced, off", "epoch_p99", "ms", 1000)
        samples = self.samples("paced", "ratio")
        yield Figure("checkpoints: epoch p99 with / without", median(samples), "", 2, False, samples=samples)
        yield self.median("checkpoints: bytes per changed key", "paced", "bytes_per_key", "")
        for part in ("p50", "p99"):
            yield self.median(f"checkpoints: barrier {part}", "paced", f"barrier_{part}", "ms")
        yield self.median(f"checkpoints: restore of {self.size.state_keys:,} keys", "full", "restore_s", "s")

    def notes(self) -> Iterator[str]:
        size = self.size
        yield (
            f"Checkpoints: a count for each of {size.state_keys:,} keys, made before the clock starts, of which "
            f"{size.changed_keys:,} change in a second; a checkpoint every second, or none. {size.changes:,} records at full "
            f"rate, and {size.changes_s} s at half of it; ratios are of runs one after the other, "
            f"{size.slow_repetitions} times. A restore is the deployment of slots with their state, their start included."
        )


class Soak(Part):
    """Memory over a long run."""

    name = "soak"

    def repeat(self, repetition: int) -> None:
        if repetition == 0:
            self.keep("soak", run("bench.soak", self.size.soak, self.size.events.keys))

    def figures(self) -> Iterator[Figure]:
        for name, label in (("slots", "slots"), ("driver", "driver and JVM")):
            yield self.median(f"soak: memory of {label} at the end", "soak", f"{name}_end", "MB", 1e-6)
            samples = self.samples("soak", name)
            yield Figure(f"soak: {label}, late / early", median(samples), "", 1.25, False, samples=samples)
        yield self.median("soak: records", "soak", "per_s", "records/s")

    def notes(self) -> Iterator[str]:
        yield (
            f"Soak: {self.size.soak:,} generated records, {self.size.events.keys:,} keys, one run; resident memory in the last "
            "third of the epochs against that between the first tenth and the first third. Progress goes to build/bench-logs."
        )


PARTS: Sequence[type[Part]] = (
    Throughput,
    States,
    Epochs,
    Latency,
    Checkpoints,
    Soak,
    Windows,
    Kafka,
    Backends,
    Savepoints,
)
