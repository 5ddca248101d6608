"""What random programs are made of. Records are (key, value, time), all whole numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from firesteel.common import Types
from firesteel.datastream import (
    AggregateFunction,
    AggregatingStateDescriptor,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    ListStateDescriptor,
    MapFunction,
    MapStateDescriptor,
    OutputTag,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    ReducingStateDescriptor,
    RuntimeContext,
    ValueStateDescriptor,
)

Record = tuple[int, int, int]
ANYTHING = Types.PICKLED_BYTE_ARRAY()
SIDE, LATE = OutputTag("side"), OutputTag("late")
MODULUS = 10_007


class Key(KeySelector):
    def get_key(self, value: Record) -> int:
        return value[0]


class ByKey(Partitioner):
    def partition(self, key: Any, num_partitions: int) -> int:
        return int(key) * 7 % num_partitions


class Scale(MapFunction):
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def map(self, value: Record) -> Record:
        return value[0], (value[1] * self.factor + 1) % MODULUS, value[2]


class Rekey(MapFunction):
    def __init__(self, keys: int) -> None:
        self.keys = keys

    def map(self, value: Record) -> Record:
        return (value[0] * 5 + value[1]) % self.keys, value[1], value[2]


class FailOnce(MapFunction):
    """Fails on the first record with that time, unless the marker says that it has failed before."""

    def __init__(self, marker: str | None, time: int) -> None:
        self.marker, self.time = marker, time

    def map(self, value: Record) -> Record:
        if self.marker is not None and value[2] >= self.time and not os.path.exists(self.marker):
            with open(self.marker, "w"):
                raise RuntimeError("just once")
        return value


class Keep(FilterFunction):
    def __init__(self, divisor: int) -> None:
        self.divisor = divisor

    def filter(self, value: Record) -> bool:
        return value[1] % self.divisor != 0


class Repeat(FlatMapFunction):
    def __init__(self, times: int) -> None:
        self.times = times

    def flat_map(self, value: Record) -> Iterator[Record]:
        for index in range(value[1] % (self.times + 1)):
            yield value[0], value[1] + index, value[2]


class Split(ProcessFunction):
    """Some to the stream, some to its side output."""

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield value if value[1] % 3 else (SIDE, value)


class Stamp(ProcessFunction):
    """Puts the timestamp into the value."""

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        yield stamped(value, ctx.timestamp())


def stamped(value: Record, timestamp: int | None) -> Record:
    return value[0], (value[1] + (7 if timestamp is None else timestamp)) % MODULUS, value[2]


class AddValues(ReduceFunction):
    def reduce(self, value1: Record, value2: Record) -> Record:
        return value1[0], (value1[1] * 3 + value2[1]) % MODULUS, value2[2]


class Polynomial(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: int, accumulator: Any) -> Any:
        return (accumulator[0] * 31 + value) % MODULUS, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> int:
        return int(accumulator[0] + accumulator[1])

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError


class FiveStates(KeyedProcessFunction):
    """All kinds of state, read, written, removed and cleared as the values say. Its output depends on the order."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value", ANYTHING))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", ANYTHING))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", ANYTHING, ANYTHING))
        self.reducing = runtime_context.get_reducing_state(
            ReducingStateDescriptor("reducing", lambda a, b: (a * 2 + b) % MODULUS, ANYTHING)
        )
        self.aggregating = runtime_context.get_aggregating_state(
            AggregatingStateDescriptor("aggregating", Polynomial(), ANYTHING)
        )

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        number = value[1]
        self.value.update((self.value.value() or 0) + number)
        self.list.add(number)
        self.map.put(number % 4, (self.map.get(number % 4) or 0) + 1)
        self.reducing.add(number)
        self.aggregating.add(number)
        if number % 5 == 0:
            self.list.update(list(self.list.get())[-3:])
        if number % 7 == 0:
            self.map.remove((number + 1) % 4)
        if number % 11 == 0:
            self.value.clear()
            self.reducing.clear()
        if number % 13 == 0:
            self.list.clear()
            self.aggregating.clear()
        if number % 17 == 0:
            self.map.clear()
        parts = (
            self.value.value() or 0,
            sum(n * i for i, n in enumerate(self.list.get(), 1)),
            sum(k * 10 + n for k, n in self.map.items()),
            self.reducing.get() or 0,
            self.aggregating.get() or 0,
        )
        yield ctx.get_current_key(), sum(n * i for i, n in enumerate(parts, 1)) % MODULUS, value[2]


class Alarms(KeyedProcessFunction):
    """Timers that are set, moved and deleted, and a look at the watermark: depends on where watermarks are exactly."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.alarm = runtime_context.get_state(ValueStateDescriptor("alarm", ANYTHING))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", ANYTHING))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        service, time = ctx.timer_service(), ctx.timestamp()
        if time <= service.current_watermark():
            yield LATE, value
            return
        self.seen.add(value[1])
        before = self.alarm.value()
        if before is not None and value[1] % 3 == 0:
            service.delete_event_time_timer(before)
        at = time + value[1] % 20
        service.register_event_time_timer(at)
        self.alarm.update(at)

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield ctx.get_current_key(), sum(self.seen.get()) % MODULUS, timestamp
        if timestamp % 2:
            self.seen.clear()


class Windows(KeyedProcessFunction):
    """Tumbling windows: nothing is late, so the result depends on no order."""

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums", ANYTHING, ANYTHING))

    def process_element(self, value, ctx):  # type: ignore[no-untyped-def]
        end = window_end(ctx.timestamp(), self.size)
        self.sums.put(end, (self.sums.get(end) or 0) + value[1])
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        yield ctx.get_current_key(), self.sums.get(timestamp) % MODULUS, timestamp
        self.sums.remove(timestamp)


def window_end(time: int, size: int) -> int:
    return time - time % size + size - 1


class Both(CoMapFunction):
    def map1(self, value: Record) -> Record:
        return value[0], (value[1] + 1) % MODULUS, value[2]

    def map2(self, value: Record) -> Record | None:
        return (value[0], (value[1] * 2) % MODULUS, value[2]) if value[1] % 5 else None


class BothFlat(CoFlatMapFunction):
    def flat_map1(self, value: Record) -> Any:
        return [value] * (value[1] % 3)

    def flat_map2(self, value: Record) -> Any:
        return None if value[1] % 2 else [value]


class Join(KeyedCoProcessFunction):
    """Every pair of records of a key, whichever comes first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_list_state(ListStateDescriptor("left", ANYTHING))
        self.right = runtime_context.get_map_state(MapStateDescriptor("right", ANYTHING, ANYTHING))

    def process_element1(self, value, ctx):  # type: ignore[no-untyped-def]
        self.left.add(value)
        for other, count in list(self.right.items()):
            for _ in range(count):
                yield pair(value, other)

    def process_element2(self, value, ctx):  # type: ignore[no-untyped-def]
        self.right.put(value, (self.right.get(value) or 0) + 1)
        for other in self.left.get():
            yield pair(other, value)


def pair(left: Record, right: Record) -> Record:
    return left[0], (left[1] * 31 + right[1]) % MODULUS, max(left[2], right[2])


class CoWindows(KeyedCoProcessFunction):
    """Tumbling windows over two streams."""

    def __init__(self, size: int) -> None:
        self.size = size

    open = Windows.open

    def process_element1(self, value, ctx):  # type: ignore[no-untyped-def]
        return Windows.process_element(self, value, ctx)  # type: ignore[arg-type]

    def process_element2(self, value, ctx):  # type: ignore[no-untyped-def]
        return Windows.process_element(self, (value[0], value[1] * 2, value[2]), ctx)  # type: ignore[arg-type]

    def on_timer(self, timestamp, ctx):  # type: ignore[no-untyped-def]
        return Windows.on_timer(self, timestamp, ctx)  # type: ignore[arg-type]


class Label(MapFunction):
    def __init__(self, label: int) -> None:
        self.label = label

    def map(self, value: Record) -> tuple[int, Record]:
        return self.label, value
