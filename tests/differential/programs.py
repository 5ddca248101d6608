"""Random programs, with what is known about the order of their streams and, where it can be, their results.

Not everything about a parallel program is determined: records of different subtasks meet in any order. A stream here says
what is: the order of the records of one key, or only which records there are. Operators that depend on an order are only
put where there is one. With that, all runs of a program must agree, however epochs are cut and whatever fails. Most
programs can also be computed in a few lines of plain Python, and then they must agree with that, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from firesteel.common import Duration, WatermarkStrategy
from firesteel.connectors.base import Source
from firesteel.connectors.collection import CollectionSource
from firesteel.datastream import DataStream, StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from tests.differential import functions as f
from tests.support.slicing import Sliced

JITTER = 40
"""By how much timestamps are out of order. Watermarks allow for it, so nothing is late unless a program wants it."""

Records = list[f.Record]


@dataclass(frozen=True)
class Stream:
    """A stream and what is known about it."""

    stream: DataStream
    parallelism: int
    ordered: bool  # the records of a key are in one subtask, in a known order
    total: bool  # all records are in one subtask, in a known order
    exact: bool  # it is known between which records of a key watermarks are
    timed: bool  # all records have timestamps, and none is late
    stamps: str  # timestamps: "all" records have their time as one, "none" has any, "some" do, "any" if it is not known
    model: Records | None  # its records, for each key in order if it is ordered; None: it cannot be said here


@dataclass
class Program:
    """A program: its one collected stream of (label, record), and how to compare what carries each label."""

    result: DataStream
    ordered: list[bool] = field(default_factory=list)
    models: list[Records | None] = field(default_factory=list)
    script: list[str] = field(default_factory=list)


class Builder:
    """Describes one random program. The same seed gives the same program in every environment.

    :param size: the most records a source has.
    :param cuts: how many records an epoch reads of each source, if that is not up to whoever runs the program.
    :param marker: a file that comes to be when a function of the program fails, which it does once; None: it never does.
    """

    def __init__(
        self,
        seed: int,
        env: StreamExecutionEnvironment,
        size: int,
        cuts: Sequence[int] | None = None,
        marker: str | None = None,
    ) -> None:
        self.random = Random(seed)
        self.env = env.set_parallelism(1)  # operators are given theirs one by one; what collects has one subtask
        self.size = size
        self.cuts = cuts
        self.marker = marker
        self.script: list[str] = []
        self.pool: list[Stream] = []
        self.used: set[int] = set()  # those that some operator reads

    def build(self) -> Program:
        for _ in range(self.random.choice([1, 1, 2, 3])):
            self.pool.append(self.source())
        for _ in range(self.random.randint(3, 8)):
            step = self.random.choice(self.steps())
            self.script.append(step.__name__)
            made = step()
            self.pool += made if isinstance(made, list) else [made]
        leaves = [each for each in self.pool if id(each) not in self.used]
        leaves[0] = self.failing(leaves[0])
        labelled = [
            each.stream.map(f.Label(label)).set_parallelism(each.parallelism) for label, each in enumerate(leaves)
        ]
        together = labelled[0].union(*labelled[1:]).global_().map(_same).set_parallelism(1)
        return Program(together, [each.ordered for each in leaves], [each.model for each in leaves], self.script)

    def steps(self) -> list[Callable[[], Any]]:
        possible = [
            self.map, self.filter, self.flat_map, self.rekey, self.spread, self.partition_custom, self.broadcast, self.split,
            self.union, self.co_map, self.co_flat_map, self.join, self.fail_once,
        ]  # fmt: skip
        if any(each.ordered for each in self.pool):
            possible += [self.reduce, self.rolling, self.five_states, self.five_states]
        if any(each.timed for each in self.pool):
            possible += [self.windows, self.co_windows]
        if any(each.stamps != "any" for each in self.pool):
            possible.append(self.stamp)
        if any(each.ordered and each.exact and each.stamps == "all" for each in self.pool):
            possible += [self.alarms, self.alarms]
        return possible

    # ---- choosing

    def any(self, **known: Any) -> Stream:
        """One of the streams that are so, preferably a late one."""
        fitting = [each for each in self.pool if all(getattr(each, name) == value for name, value in known.items())]
        chosen = fitting[-1] if self.random.random() < 0.5 else self.random.choice(fitting)
        self.used.add(id(chosen))
        return chosen

    def degree(self) -> int:
        return self.random.randint(1, 3)

    def chain(self, stream: DataStream, parallelism: int) -> DataStream:
        stream = stream.set_parallelism(parallelism)
        return stream.disable_chaining() if self.random.random() < 0.2 else stream

    # ---- sources

    def source(self) -> Stream:
        stamps = "all" if self.random.random() < 0.8 else "none"
        bound = self.random.choice([JITTER, JITTER, JITTER // 8])
        timed = stamps == "all" and bound == JITTER
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound)).with_timestamp_assigner(
            _time_of
        )
        keys, size = self.random.randint(1, 20), self.random.randint(1, self.size)
        if self.random.random() < 0.6:
            self.script.append(f"collection of {size}, {keys} keys")
            records = self.records(size, keys)
            stream = self.read(CollectionSource(records), None, 1)
            if stamps == "all":
                stream = stream.assign_timestamps_and_watermarks(strategy).set_parallelism(1)
            return Stream(stream, 1, True, True, True, timed, stamps, records)
        parallelism = self.degree()
        self.script.append(f"sequence of {size}, {keys} keys, by {parallelism}")
        stream = self.read(NumberSequenceSource(1, size), strategy if stamps == "all" else None, parallelism)
        stream = stream.map(_Numbered(keys)).set_parallelism(parallelism)
        one = parallelism == 1
        records = [_Numbered(keys).map(n) for n in range(1, size + 1)]
        return Stream(stream, parallelism, one, one, one, timed, stamps, records)

    def read(self, source: Source, strategy: WatermarkStrategy | None, parallelism: int) -> DataStream:
        if self.cuts is not None:
            source = Sliced(source, *self.cuts)
        strategy = strategy or WatermarkStrategy.no_watermarks()
        return self.env.from_source(source, strategy, "source").set_parallelism(parallelism)

    def records(self, size: int, keys: int) -> Records:
        r = self.random
        return [(r.randrange(keys), r.randrange(1000), 100 + n + r.randrange(JITTER)) for n in range(size)]

    # ---- one record at a time

    def _forward(self, given: Stream, stream: DataStream, model: Callable[[Records], Records]) -> Stream:
        stream = self.chain(stream, given.parallelism)
        return replace(given, stream=stream, model=None if given.model is None else model(given.model))

    def map(self) -> Stream:
        given, function = self.any(), f.Scale(self.random.randint(1, 9))
        return self._forward(given, given.stream.map(function), lambda m: [function.map(v) for v in m])

    def fail_once(self) -> Stream:
        return self.failing(self.any())

    def failing(self, given: Stream) -> Stream:
        return self._forward(given, given.stream.map(f.FailOnce(self.marker, self.size // 3)), lambda m: m)

    def filter(self) -> Stream:
        given, function = self.any(), f.Keep(self.random.randint(2, 5))
        return self._forward(given, given.stream.filter(function), lambda m: [v for v in m if function.filter(v)])

    def flat_map(self) -> Stream:
        given, function = self.any(), f.Repeat(self.random.randint(1, 2))
        return self._forward(
            given, given.stream.flat_map(function), lambda m: [out for v in m for out in function.flat_map(v)]
        )

    def rekey(self) -> Stream:
        given, function = self.any(), f.Rekey(self.random.randint(1, 15))
        made = self._forward(given, given.stream.map(function), lambda m: [function.map(v) for v in m])
        return replace(made, ordered=given.total, exact=given.exact and given.total)

    def split(self) -> list[Stream]:
        given = self.any()
        stream = self.chain(given.stream.process(f.Split()), given.parallelism)
        main, side = stream, stream.get_side_output(f.SIDE)
        model = given.model
        return [
            replace(given, stream=main, model=None if model is None else [v for v in model if v[1] % 3]),
            replace(given, stream=side, model=None if model is None else [v for v in model if not v[1] % 3]),
        ]

    def stamp(self) -> Stream:
        given = self.any(stamps=self.random.choice(sorted({each.stamps for each in self.pool} - {"any"})))
        made = self._forward(
            given,
            given.stream.process(f.Stamp()),
            lambda m: [f.stamped(v, v[2] if given.stamps == "all" else None) for v in m],
        )
        return replace(made, model=None) if given.stamps == "some" else made

    # ---- spreading

    def spread(self) -> Stream:
        given, parallelism = self.any(), self.degree()
        how = self.random.choice(["rebalance", "rescale", "shuffle", "global_"])
        self.script.append(how)
        stream = getattr(given.stream, how)().map(_same).set_parallelism(parallelism)
        if how == "global_":
            return replace(given, stream=stream, parallelism=parallelism, total=given.total, exact=False)
        return replace(given, stream=stream, parallelism=parallelism, ordered=False, total=False, exact=False)

    def partition_custom(self) -> Stream:
        given, parallelism = self.any(), self.degree()
        stream = given.stream.partition_custom(f.ByKey(), f.Key()).map(_same).set_parallelism(parallelism)
        one = parallelism == 1
        return replace(
            given, stream=stream, parallelism=parallelism, total=given.total and one, exact=given.exact and one
        )

    def broadcast(self) -> Stream:
        given, parallelism = self.any(), self.degree()
        stream = given.stream.broadcast().map(_same).set_parallelism(parallelism)
        model = None if given.model is None else given.model * parallelism
        if parallelism == 1:
            return replace(given, stream=stream, parallelism=1, exact=given.exact and given.parallelism == 1)
        return Stream(stream, parallelism, False, False, False, given.timed, given.stamps, model)

    # ---- two streams

    def union(self) -> Stream:
        one, two = self.any(), self.any()
        parallelism = self.degree()
        stream = self.chain(one.stream.union(two.stream).map(_same), parallelism)
        model = None if one.model is None or two.model is None else one.model + two.model
        return Stream(stream, parallelism, False, False, False, one.timed and two.timed, _together(one, two), model)

    def _connected(self, function: Any, map1: Callable[..., Any], map2: Callable[..., Any], method: str) -> Stream:
        one, two = self.any(), self.any()
        parallelism = self.degree()
        stream = self.chain(getattr(one.stream.connect(two.stream), method)(function), parallelism)
        model = None
        if one.model is not None and two.model is not None:
            model = [out for v in one.model for out in map1(v) or ()] + [
                out for v in two.model for out in map2(v) or ()
            ]
        return Stream(stream, parallelism, False, False, False, one.timed and two.timed, _together(one, two), model)

    def co_map(self) -> Stream:
        both = f.Both()
        return self._connected(
            both, lambda v: [both.map1(v)], lambda v: [out for out in [both.map2(v)] if out is not None], "map"
        )

    def co_flat_map(self) -> Stream:
        both = f.BothFlat()
        return self._connected(both, both.flat_map1, both.flat_map2, "flat_map")

    def join(self) -> Stream:
        one, two = self._thinned(self.any()), self._thinned(self.any())
        parallelism = self.degree()
        stream = one.stream.connect(two.stream).key_by(f.Key(), f.Key()).process(f.Join())
        model = None
        if one.model is not None and two.model is not None:
            model = [f.pair(a, b) for a, b in itertools.product(one.model, two.model) if a[0] == b[0]]
        return Stream(self.chain(stream, parallelism), parallelism, False, False, False, False, "any", model)

    def _thinned(self, given: Stream) -> Stream:
        """With few records, since there are as many pairs as their number's square."""
        few = _Few(max(11, self.size // 25))
        return self._forward(given, given.stream.filter(few), lambda m: [v for v in m if few.filter(v)])

    def co_windows(self) -> Stream:
        one, two = self.any(timed=True), self.any(timed=True)
        size, parallelism = self.random.choice([7, 50, 300]), self.degree()
        stream = one.stream.connect(two.stream).key_by(f.Key(), f.Key()).process(f.CoWindows(size))
        model = None
        if one.model is not None and two.model is not None:
            model = _windows(one.model + [(k, v * 2, t) for k, v, t in two.model], size)
        return Stream(self.chain(stream, parallelism), parallelism, True, False, False, True, "all", model)

    # ---- by key

    def _keyed(self, given: Stream, stream: DataStream, parallelism: int, model: Records | None) -> Stream:
        stream = self.chain(stream, parallelism)
        one = parallelism == 1
        exact = given.exact and one
        return Stream(stream, parallelism, True, given.total and one, exact, given.timed, given.stamps, model)

    def reduce(self) -> Stream:
        given, function = self.any(ordered=True), f.AddValues()
        stream = given.stream.key_by(f.Key()).reduce(function)
        return self._keyed(given, stream, self.degree(), _reduced(given.model, function.reduce))

    def rolling(self) -> Stream:
        given = self.any(ordered=True)
        method, combine = self.random.choice(
            [
                ("sum", lambda a, b: (a[0], a[1] + b[1], a[2])),
                ("min", lambda a, b: (a[0], min(a[1], b[1]), a[2])),
                ("max", lambda a, b: (a[0], max(a[1], b[1]), a[2])),
                ("min_by", lambda a, b: b if b[1] < a[1] else a),
                ("max_by", lambda a, b: b if b[1] > a[1] else a),
            ]
        )
        self.script.append(method)
        stream = getattr(given.stream.key_by(f.Key()), method)(1)
        made = self._keyed(given, stream, self.degree(), _reduced(given.model, combine))
        # records have the time of a key's first one, but not its timestamp
        return replace(made, timed=False, stamps="some" if made.stamps == "all" else made.stamps)

    def five_states(self) -> Stream:
        given = self.any(ordered=True)
        return self._keyed(given, given.stream.key_by(f.Key()).process(f.FiveStates()), self.degree(), None)

    def alarms(self) -> list[Stream]:
        given = self.any(ordered=True, exact=True, stamps="all")
        made = self._keyed(given, given.stream.key_by(f.Key()).process(f.Alarms()), self.degree(), None)
        return [made, replace(made, stream=made.stream.get_side_output(f.LATE), timed=False)]

    def windows(self) -> Stream:
        given, size = self.any(timed=True), self.random.choice([7, 50, 300])
        stream = given.stream.key_by(f.Key()).process(f.Windows(size))
        made = self._keyed(given, stream, self.degree(), None if given.model is None else _windows(given.model, size))
        return replace(made, total=False, exact=False, stamps="all")


def _together(one: Stream, two: Stream) -> str:
    if one.stamps == two.stamps:
        return one.stamps
    return "any" if "any" in (one.stamps, two.stamps) else "some"


def _windows(records: Records, size: int) -> Records:
    sums: dict[tuple[int, int], int] = {}
    for key, value, time in records:
        window = f.window_end(time, size), key
        sums[window] = sums.get(window, 0) + value
    return [(key, sums[end, key] % f.MODULUS, end) for end, key in sorted(sums)]


def _reduced(records: Records | None, combine: Callable[[f.Record, f.Record], f.Record]) -> Records | None:
    if records is None:
        return None
    state: dict[int, f.Record] = {}
    out = []
    for record in records:
        key = record[0]
        state[key] = combine(state[key], record) if key in state else record
        out.append(state[key])
    return out


class _Few(f.Keep):
    def filter(self, value: f.Record) -> bool:
        return value[1] % self.divisor == 0


def _same(value: Any) -> Any:
    return value


def _time_of(value: Any, _: int) -> int:
    return int(value if isinstance(value, int) else value[2])


class _Numbered(f.Scale):
    """Numbers as records whose time is the number."""

    def __init__(self, keys: int) -> None:
        self.keys = keys

    def map(self, value: int) -> f.Record:  # type: ignore[override]
        return value * 3 % self.keys, value * 17 % f.MODULUS, value
