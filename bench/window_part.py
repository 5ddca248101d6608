"""The `windows` part: sums of 10 s windows, plain and combined before the shuffle, and what others make of them."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.figures import Figure
from bench.part import Part
from bench.programs import run
from bench.windows import PER_KEY, WINDOW_MS

HOW = ("process", "plain", "combined", "plain-reduce", "combined-reduce")
SLOWER, SLOWEST = 4, 16  # a part of the records for what would take minutes


class Windows(Part):
    """Windows against a keyed function over the same stream, and against those of bytewax and of Spark."""

    name = "windows"

    def repeat(self, repetition: int) -> None:
        size = self.size
        if repetition >= size.slow_repetitions:
            return
        rates = {how: run("bench.windows", how, size.states, size.events.keys) for how in HOW}
        for how, answer in rates.items():
            self.keep(how, answer)
        self.keep("ratio", {how: rates[how]["per_s"] / rates["process"]["per_s"] for how in HOW})
        gains = {how: rates[f"combined{how}"]["per_s"] / rates[f"plain{how}"]["per_s"] for how in ("", "-reduce")}
        self.keep("gain", gains)
        self.keep("spark", run("bench.peers.spark_windows", size.states, size.events.keys))
        if repetition == 0:
            bytewax = run("bench.peers.bytewax_windows", size.states // SLOWER, size.events.keys)
            self.keep("no bytewax" if "missing" in bytewax else "bytewax", bytewax)
            few = (size.states // SLOWEST, size.events.keys // SLOWEST)
            self.keep("pandas", run("bench.peers.spark_pandas_windows", *few))

    def figures(self) -> Iterator[Figure]:
        yield self.median("windows: keyed function, same stream", "process", "per_s", "records/s")
        yield self.median("windows: plain", "plain", "per_s", "records/s")
        yield self.median("windows: pre-combined", "combined", "per_s", "records/s")
        yield self.median("windows: plain, a user's reduce", "plain-reduce", "per_s", "records/s")
        yield self.median("windows: pre-combined, a user's reduce", "combined-reduce", "per_s", "records/s")
        if "bytewax" in self.answers:
            yield self.median("windows: bytewax, not durable", "bytewax", "per_s", "records/s")
        yield self.median("windows: Spark SQL window()", "spark", "per_s", "records/s")
        yield self.median("windows: Spark applyInPandasWithState", "pandas", "per_s", "records/s")
        plain, gain, reduce = self.samples("ratio", "plain"), self.samples("gain", ""), self.samples("gain", "-reduce")
        yield Figure("windows: plain / keyed function", median(plain), "", 0.6, samples=plain)
        yield Figure("windows: pre-combined / plain", median(gain), "", 1.5, samples=gain)
        yield Figure("windows: pre-combined / plain, a user's reduce", median(reduce), "", samples=reduce)

    def notes(self) -> Iterator[str]:
        yield (
            f"Windows: {self.size.states:,} records, {self.size.events.keys:,} keys, sums of {WINDOW_MS // 1000} s tumbling "
            f"windows with about {PER_KEY} records of a key, a checkpoint every second; every sum compared with Arrow's. "
            "Sums are made by `sum()`, and for comparison by a Python function given to `reduce()`. The keyed function has the "
            "same source and watermarks. Spark SQL aggregates in the JVM, where no Python touches a record; "
            "micro-batches of a quarter of the records, the first one dropped. applyInPandasWithState, Spark's way in "
            f"Python, has the same batches of 1/{SLOWEST} of the records and keys. bytewax has 1/{SLOWER} of the records, runs "
            "in two processes and keeps nothing durable. These two run once."
        )
