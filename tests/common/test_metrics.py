from __future__ import annotations

import json

import numpy as np
import pytest

from firesteel.metrics import Counter, Distribution, Meter, MetricGroup, SlotMetrics, merge


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_a_slots_metrics_are_reported_by_operator_and_name():
    metrics = SlotMetrics()
    group = metrics.group("words")
    group.counter("records").inc()
    group.counter("records").inc(4)
    group.counter("records").dec(2)
    group.gauge("queue", lambda: 7)
    group.add_group("disk").distribution("bytes").update(3)
    group.add_group("table", "users").counter("rows").inc()
    metrics.group("no metrics")
    assert metrics.snapshot() == {
        "words": {
            "records": 3,
            "queue": 7,
            "disk.bytes": {"count": 1, "sum": 3, "min": 3, "max": 3, "mean": 3.0},
            "table.users.rows": 1,
        }
    }


def test_groups_and_metrics_have_pyflinks_types():
    group = SlotMetrics().group("a")
    assert isinstance(group, MetricGroup)
    assert isinstance(group.counter("c"), Counter)
    assert isinstance(group.meter("m"), Meter)
    assert isinstance(group.distribution("d"), Distribution)


def test_asking_again_gives_the_same_metric():
    metrics = SlotMetrics()
    first = metrics.group("a").add_group("g").counter("c")
    assert metrics.group("a").add_group("g").counter("c") is first


def test_one_name_cannot_be_two_kinds_of_metric():
    group = SlotMetrics().group("words")
    group.counter("n")
    with pytest.raises(ValueError, match="'n' of operator words is registered as two kinds: Counter and Meter"):
        group.meter("n")


def test_a_meters_rate_is_that_of_its_time_span():
    clock = Clock()
    metrics = SlotMetrics(clock)
    meter = metrics.group("a").meter("events", time_span_in_seconds=10)
    assert metrics.snapshot()["a"]["events"] == {"count": 0, "rate": 0.0}
    for _ in range(10):
        meter.mark_event(100)
        clock.now += 1
        metrics.snapshot()
    assert metrics.snapshot()["a"]["events"] == {"count": 1000, "rate": 100.0}
    clock.now += 10
    meter.mark_event()
    assert metrics.snapshot()["a"]["events"] == {"count": 1001, "rate": 0.1}
    assert meter.get_count() == 1001


def test_a_gauge_that_fails_is_left_out_and_complained_about_once(caplog):
    metrics = SlotMetrics()
    metrics.group("a").gauge("broken", lambda: 1 / 0)
    metrics.group("a").gauge("text", lambda: "many")
    assert metrics.snapshot() == {}
    assert metrics.snapshot() == {}
    assert [record.args[0] for record in caplog.records] == ["broken of operator a", "text of operator a"]


def test_a_gauge_registered_again_has_the_new_function():
    metrics = SlotMetrics()
    metrics.group("a").gauge("g", lambda: 1)
    metrics.group("a").gauge("g", lambda: 2)
    assert metrics.snapshot()["a"]["g"] == 2


def test_an_empty_distribution_has_no_bounds():
    metrics = SlotMetrics()
    metrics.group("a").distribution("d")
    assert metrics.snapshot()["a"]["d"] == {"count": 0, "sum": 0, "min": None, "max": None, "mean": None}


def test_snapshots_are_json_whatever_numbers_were_given():
    metrics = SlotMetrics()
    group = metrics.group("a")
    group.counter("c").inc(np.int64(2))
    group.gauge("g", lambda: np.float32(1.5))
    group.meter("m").mark_event(np.int64(2))
    group.distribution("d").update(np.float64(2))
    snapshot = metrics.snapshot()
    assert json.loads(json.dumps(snapshot)) == snapshot


def test_slots_are_merged_by_operator_and_name():
    def slot(records, sizes):
        clock = Clock()
        metrics = SlotMetrics(clock)
        group = metrics.group("a")
        group.counter("c").inc(records)
        group.gauge("g", lambda: records)
        group.meter("m").mark_event(records)
        for size in sizes:
            group.distribution("d").update(size)
        group.distribution("e")
        clock.now += 2
        return metrics.snapshot()

    only_here = {"b": {"c": 1}}
    assert merge([slot(2, [1, 5]), slot(4, [3]), only_here]) == {
        "a": {
            "c": 6,
            "g": 6,
            "m": {"count": 6, "rate": 3.0},
            "d": {"count": 3, "sum": 9, "min": 1, "max": 5, "mean": 3.0},
            "e": {"count": 0, "sum": 0, "min": None, "max": None, "mean": None},
        },
        "b": {"c": 1},
    }


def test_merging_nothing_gives_nothing():
    assert merge([]) == {}
