"""Key functions that only take a field are replaced by what does so without a call of a Python function."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from types import SimpleNamespace
from typing import Any

import pytest

from firesteel.common import Row
from firesteel.datastream import KeySelector, StreamExecutionEnvironment
from firesteel.runtime.callables import resolve_selector
from firesteel.testing import GraphHarness

ONE = 1


class First(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[0]


def second(value: Any) -> Any:
    """With a docstring."""
    return value[1]


@pytest.mark.parametrize(
    ("selector", "kind", "record"),
    [
        (lambda record: record[0], itemgetter, ("a", 1)),
        (lambda record: record[-1], itemgetter, ["a", 1]),
        (lambda record: record["id"], itemgetter, {"id": 7}),
        (lambda record: record["id"], itemgetter, Row(id=7)),
        (lambda record: record.id, attrgetter, SimpleNamespace(id=7)),
        (second, itemgetter, ("a", 1)),
        (First(), itemgetter, ("a", 1)),
    ],
)
def test_a_field(selector: Any, kind: type, record: Any) -> None:
    resolved = resolve_selector(selector)
    assert type(resolved) is kind
    assert resolved(record) == (selector.get_key if isinstance(selector, KeySelector) else selector)(record)


def counted(record: Any, seen: list[Any] = []) -> Any:  # noqa: B006
    seen.append(record)
    return record[0]


@pytest.mark.parametrize(
    "selector",
    [
        lambda record: record,
        lambda record: record[0][1],
        lambda record: record[0] + 1,
        lambda record: (record[0], record[1]),
        lambda record: record.id.name,
        lambda record: record.id(),
        lambda record: record[ONE],
        lambda record, field=0: record[field],
        lambda *records: records[0],
        lambda record: ONE,
        counted,
        itemgetter(0),
        abs,
        "".join,
    ],
)
def test_everything_else_stays_as_it_is(selector: Any) -> None:
    assert resolve_selector(selector) is selector


def test_it_fails_with_the_users_own_line() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection([("a", 1), ("b",), ("c", 2)]).key_by(lambda record: record[1]).sum(1)
    with GraphHarness(env, collect=stream) as harness, pytest.raises(IndexError) as caught:
        harness.run()
    assert caught.traceback[-1].name == "<lambda>"
    where = "on the record ('b',)"
    assert where in "".join(getattr(caught.value, "__notes__", [where]))  # which Python 3.10 has not
