"""The smallest job around one function or operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import EnumeratorContext, Json, ReaderContext, Source, SourceReader, SplitEnumerator
from firesteel.datastream import functions
from firesteel.datastream.data_stream import DataStream
from firesteel.datastream.environment import StreamExecutionEnvironment
from firesteel.datastream.functions import KeySelector
from firesteel.errors import GraphError
from firesteel.graph import nodes
from firesteel.graph.nodes import Graph, Input, Partitioning
from firesteel.graph.plan import build_plan
from firesteel.graph.shipping import pack_plan
from firesteel.testing.recording import FUNCTION


@dataclass(frozen=True)
class _Kind:
    """How functions of a class are run: as which operator, over how many inputs, and whether these are keyed."""

    function: type
    operator: Callable[[Any], Any]
    inputs: int = 1
    keyed: bool | None = None  # None: either


_LONG = 2**62  # longer than any test's event time, and a timer's time all the same

_KINDS = {
    "map": _Kind(functions.MapFunction, nodes.Map),
    "flat_map": _Kind(functions.FlatMapFunction, nodes.FlatMap),
    "filter": _Kind(functions.FilterFunction, nodes.Filter),
    "reduce": _Kind(functions.ReduceFunction, nodes.Reduce, keyed=True),
    "process": _Kind(functions.ProcessFunction, nodes.Process, keyed=False),
    "keyed_process": _Kind(functions.KeyedProcessFunction, nodes.Process, keyed=True),
    "co_map": _Kind(functions.CoMapFunction, nodes.CoMap, 2),
    "co_flat_map": _Kind(functions.CoFlatMapFunction, nodes.CoFlatMap, 2),
    "co_process": _Kind(functions.CoProcessFunction, nodes.CoProcess, 2, keyed=False),
    "keyed_co_process": _Kind(functions.KeyedCoProcessFunction, nodes.CoProcess, 2, keyed=True),
    # the interval is the program's: here every pair of a key is joined
    "join": _Kind(functions.ProcessJoinFunction, lambda join: nodes.IntervalJoin(join, -_LONG, _LONG), 2, keyed=True),
}
_OF_WINDOWS = (
    functions.WindowFunction,
    functions.ProcessWindowFunction,
    functions.AllWindowFunction,
    functions.ProcessAllWindowFunction,
    functions.AggregateFunction,
)
_PLAIN = ("map", "flat_map", "filter", "reduce")


def function_program(function: Any, kind: str | None, key_selector: Any, output_type: TypeInformation | None) -> bytes:
    """A packed plan: the function's inputs, which are never read, the function, and somebody who reads its output."""
    chosen = _kind_of(function, kind)
    selectors = _selectors(function, chosen, key_selector)
    graph = Graph()
    inputs = []
    for port, selector in enumerate(selectors):
        source = graph.add(nodes.Read(_Unread()), f"input {port + 1}", ())
        spread = Partitioning.FORWARD if selector is None else Partitioning.KEY
        inputs.append(Input(source.id, spread, key_selector=selector, port=port))
    name = getattr(function, "__name__", type(function).__name__)
    node = graph.add(chosen.operator(function), name, tuple(inputs), uid=FUNCTION, output_type=output_type)
    graph.add(nodes.Collect(), "output", (Input(node.id),))
    return pack_plan(build_plan(graph, 1, None))


def stream_program(build: Callable[[DataStream], DataStream]) -> bytes:
    """The same around the operator that a function adds to a stream."""
    environment = StreamExecutionEnvironment.get_execution_environment()
    graph = environment.graph
    source = graph.add(nodes.Read(_Unread()), "input 1", ())
    stream = build(DataStream(environment, (Input(source.id),)))
    added = graph.nodes()[1:]
    if not isinstance(stream, DataStream) or len(added) != 1 or stream._inputs != (Input(added[0].id),):
        names = ", ".join(repr(node.name) for node in added) or "none"
        raise GraphError(
            f"around() takes a function that adds one operator to the stream it is given, and returns the operator's own "
            f"stream; it added: {names}"
        )
    graph.change(added[0].id, uid=FUNCTION, parallelism=1)
    graph.add(nodes.Collect(), "output", (Input(added[0].id),))
    return pack_plan(build_plan(graph, 1, None))


def _kind_of(function: Any, kind: str | None) -> _Kind:
    for known in _KINDS.values():
        if isinstance(function, known.function):
            return known
    if isinstance(function, _OF_WINDOWS):
        raise GraphError(
            f"a {type(function).__name__} is about windows, and nothing says which: describe them with "
            f"FunctionHarness.around(lambda stream: stream.key_by(...).window(...).process(function))"
        )
    if not callable(function) or isinstance(function, type):
        hint = "; give an instance of the class" if isinstance(function, type) else ""
        raise GraphError(f"a FunctionHarness takes a function object or a plain function, not {function!r:.200}{hint}")
    if kind not in _PLAIN:
        raise GraphError(
            f"{function!r:.200} is a plain function: say how it is used, with kind={', kind='.join(map(repr, _PLAIN))}"
        )
    return _KINDS[kind]


def _selectors(function: Any, kind: _Kind, given: Any) -> list[Any]:
    what = kind.function.__name__
    if kind.keyed is True and given is None:
        raise GraphError(f"a {what} runs on a keyed stream: give a key_selector=...")
    if kind.keyed is False and given is not None:
        raise GraphError(f"a {what} runs on a stream that is not keyed: use a Keyed{what}, or give no key_selector")
    selectors = list(given) if isinstance(given, (tuple, list)) else [given] * kind.inputs
    if len(selectors) != kind.inputs:
        raise GraphError(f"a {what} has {kind.inputs} input(s), but {len(selectors)} key selectors were given")
    for selector in selectors:
        if given is not None and not (isinstance(selector, KeySelector) or callable(selector)):
            raise GraphError(f"key_selector takes a KeySelector or a function, not {selector!r:.200}")
    return selectors


class _Unread(Source):
    """An input that the harness writes to directly."""

    def create_enumerator(self, context: EnumeratorContext) -> SplitEnumerator:
        raise NotImplementedError("a harness plans nothing")

    def create_reader(self, context: ReaderContext) -> SourceReader:
        return _UnreadReader()


class _UnreadReader(SourceReader):
    def read(self, planned: Json) -> Iterator[list[Any]]:
        return iter(())
