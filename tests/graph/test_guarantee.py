from __future__ import annotations

import json

import pytest

from firesteel.common.serialization import Encoder
from firesteel.connectors.base import Sink, SinkWriter, WriterContext
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.checkpoint_config import CheckpointingMode
from firesteel.datastream.connectors import FileSink
from firesteel.graph.guarantee import Level, end_to_end


class Careless(Sink):
    guarantee = DeliveryGuarantee.NONE  # type: ignore[assignment]

    def create_writer(self, context: WriterContext) -> SinkWriter:
        raise NotImplementedError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment().set_parallelism(2).enable_checkpointing(1000)


@pytest.fixture
def files(tmp_path) -> FileSink:
    return FileSink.for_row_format(str(tmp_path), Encoder.simple_string_encoder()).build()


def test_replayable_sources_and_transactional_sinks_make_exactly_once(env, files):
    env.from_sequence(1, 2).sink_to(files)
    guarantee = env.guarantee()
    assert (guarantee.level, guarantee.limited_by) == (Level.EXACTLY_ONCE, [])
    assert guarantee.text == "exactly-once: every source can be read again and every sink is transactional"


def test_a_sink_without_transactions_makes_at_least_once(env, files):
    numbers = env.from_sequence(1, 2)
    numbers.sink_to(files)
    numbers.print()
    guarantee = env.guarantee()
    assert guarantee.level is Level.AT_LEAST_ONCE
    assert guarantee.text.startswith("at-least-once, limited by sink 'Print to Std. Out' (PrintSink, defined at test_")


def test_a_socket_makes_at_most_once_whatever_the_sink(env, files):
    env.socket_text_stream("localhost", 9999).sink_to(files)
    guarantee = env.guarantee()
    assert guarantee.level is Level.AT_MOST_ONCE
    assert len(guarantee.limited_by) == 1
    assert guarantee.limited_by[0].startswith("source 'Socket Stream' (SocketSource, defined at test_guarantee.py:")
    assert guarantee.text.endswith("what it read and lost in a failure cannot be read again")


def test_all_of_the_weakest_parts_are_named_and_no_others(env):
    env.add_source(list, "mine").union(env.socket_text_stream("localhost", 9999)).print()
    guarantee = env.guarantee()
    assert [part.split("(")[0] for part in guarantee.limited_by] == ["source 'mine' ", "source 'Socket Stream' "]


def test_a_sink_that_promises_nothing_makes_no_guarantee(env):
    env.from_sequence(1, 2).sink_to(Careless())
    assert env.guarantee().level is Level.NONE
    assert env.guarantee().text.startswith("no guarantee, limited by sink 'Careless'")


def test_the_checkpointing_mode_limits_too(env, files):
    env.get_checkpoint_config().set_checkpointing_mode(CheckpointingMode.AT_LEAST_ONCE)
    env.from_sequence(1, 2).sink_to(files)
    assert env.guarantee().level is Level.AT_LEAST_ONCE
    assert env.guarantee().limited_by == ["the checkpointing mode AT_LEAST_ONCE"]


def test_without_checkpointing_nothing_is_promised(files):
    env = StreamExecutionEnvironment()
    env.from_sequence(1, 2).sink_to(files)
    guarantee = env.guarantee()
    assert (guarantee.level, guarantee.limited_by) == (Level.NONE, ["checkpointing is off"])
    assert "enable_checkpointing" in guarantee.text


def test_a_plan_has_the_guarantee_of_its_program(env):
    env.socket_text_stream("localhost", 9999).print()
    assert end_to_end(env.plan(), True) == env.guarantee()


def test_explain_ends_with_the_guarantee(env):
    env.socket_text_stream("localhost", 9999).print()
    assert env.explain().splitlines()[-1] == f"guarantee: {env.guarantee().text}"


def test_the_execution_plan_is_flinks_json(env):
    numbers = env.from_collection([1])
    numbers.map(lambda n: n).key_by(lambda n: n).reduce(lambda a, b: a + b).print()
    assert json.loads(env.get_execution_plan()) == {
        "nodes": [
            _node(1, "Source: Collection Source", "Data Source", 1),
            _node(2, "Map", "Operator", 2, (1, "REBALANCE")),
            _node(3, _reduce_name(env), "Operator", 2, (2, "HASH")),
            _node(4, "Sink: Print to Std. Out", "Data Sink", 2, (3, "FORWARD")),
        ]
    }


def test_a_description_is_what_an_operator_of_the_execution_plan_contains(env):
    env.from_collection([1]).map(lambda n: n).set_description("leaves numbers alone").print().set_description("shows")
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [(node["type"], node["contents"]) for node in nodes] == [
        ("Source: Collection Source", "Source: Collection Source"),
        ("Map", "leaves numbers alone"),
        ("Sink: Print to Std. Out", "shows"),
    ]


def _reduce_name(env):
    return env.graph[2].name


def _node(number, name, pact, parallelism, *predecessors):
    node = {"id": number, "type": name, "pact": pact, "contents": name, "parallelism": parallelism}
    if predecessors:
        node["predecessors"] = [{"id": i, "ship_strategy": s, "side": "second"} for i, s in predecessors]
    return node
