from __future__ import annotations

import os
import sys

import pytest

from firesteel.common import Configuration, Row, Types
from firesteel.common.watermark_strategy import WatermarkStrategy
from firesteel.connectors.function_source import CallableSource
from firesteel.connectors.socket_source import SocketSource
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors import DataGeneratorSource, NumberSequenceSource
from firesteel.datastream.execution_mode import RuntimeExecutionMode
from firesteel.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from firesteel.errors import ConfigurationError, GraphError, TypeMismatchError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def last(env):
    return env.graph.nodes()[-1]


def test_parallelism_is_the_number_of_cores_until_it_is_set(env):
    assert env.get_parallelism() == env.get_default_local_parallelism() == (os.cpu_count() or 1)
    env.set_default_local_parallelism(7)
    assert (env.get_parallelism(), env.get_default_local_parallelism()) == (7, 7)
    env.set_parallelism(3)
    env.set_default_local_parallelism(9)
    assert env.get_parallelism() == 3


def test_the_config_and_the_environment_are_about_the_same_parallelism(env):
    env.get_config().set_parallelism(5).set_max_parallelism(64)
    assert (env.get_parallelism(), env.get_max_parallelism()) == (5, 64)
    env.set_parallelism(6).set_max_parallelism(32)
    assert (env.get_config().get_parallelism(), env.get_config().get_max_parallelism()) == (6, 32)
    env.from_sequence(1, 2).print()
    assert {(o.parallelism, o.max_parallelism) for o in env.plan().operators} == {(6, 32)}


def test_max_parallelism_is_not_set_by_itself(env):
    assert env.get_max_parallelism() == -1


def test_a_declared_type_is_the_streams(env):
    declared = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
    env.from_collection([Row("a", 1)], declared)
    assert last(env).output_type == declared
    env.add_source(list, "mine", Types.STRING())
    assert last(env).output_type == Types.STRING()
    env.from_source(NumberSequenceSource(1, 2), None, "numbers", Types.LONG())
    assert last(env).output_type == Types.LONG()


def test_a_source_may_say_its_type_itself(env):
    source = DataGeneratorSource(str, 3, type_info=Types.STRING())
    env.from_source(source, None, "words")
    assert last(env).output_type == Types.STRING()
    env.from_source(source, None, "words", Types.CHAR())
    assert last(env).output_type == Types.CHAR()


def test_a_collection_of_another_type_is_refused_at_once(env):
    with pytest.raises(TypeMismatchError, match=r"field \[1\] of the record \('b', 'x'\)"):
        env.from_collection([("a", 1), ("b", "x")], Types.TUPLE([Types.STRING(), Types.INT()]))


@pytest.mark.parametrize("bounds", [(1.5, 3), (1, 3.0), ("1", 3), (1, None)])
def test_a_sequence_that_is_not_of_whole_numbers_is_refused_when_it_is_described(env, bounds):
    with pytest.raises(
        ConfigurationError, match="number sequence goes from one whole number to another, but was given"
    ):
        env.from_sequence(*bounds)


def test_sources_of_the_driver_have_one_subtask(env):
    env.socket_text_stream("localhost", 9999, "|", -1)
    node = last(env)
    assert (node.name, node.parallelism) == ("Socket Stream", 1)
    source = node.operator.source
    assert isinstance(source, SocketSource)
    assert (source.hostname, source.port, source.delimiter, source.max_retries) == ("localhost", 9999, "|", -1)
    env.add_source(list)
    assert (last(env).name, last(env).parallelism) == ("Custom Source", 1)
    assert isinstance(last(env).operator.source, CallableSource)


def test_add_source_takes_sources_too(env):
    env.add_source(NumberSequenceSource(1, 2), "numbers")
    assert last(env).operator.source.end == 2
    assert last(env).parallelism is None


def test_a_watermark_strategy_goes_with_the_source(env):
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    env.from_source(NumberSequenceSource(1, 2), strategy, "numbers")
    assert last(env).operator.strategy == strategy


def test_no_watermarks_is_no_strategy_unless_it_assigns_timestamps(env):
    env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks(), "numbers")
    assert last(env).operator.strategy is None
    assigning = WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value, _: value)
    env.from_source(NumberSequenceSource(1, 2), assigning, "numbers")
    assert last(env).operator.strategy is assigning


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda env: env.from_source(NumberSequenceSource(1, 2), "event time", "x"), "WatermarkStrategy"),
        (lambda env: env.from_source([1, 2], None, "x"), "firesteel Source"),
        (lambda env: env.add_source([1, 2]), "SourceFunction"),
    ],
)
def test_sources_of_another_kind_are_refused(env, call, words):
    with pytest.raises(GraphError, match=words):
        call(env)


def test_global_job_parameters_reach_the_jobs_settings(env):
    env.get_config().set_global_job_parameters({"threshold": 3})
    assert env.settings("job").parameters == {"threshold": "3"}


def test_automatic_uids_can_be_forbidden(env):
    env.from_sequence(1, 2).uid("numbers").print()
    env.get_config().disable_auto_generated_uids()
    with pytest.raises(GraphError, match=r"'Print to Std. Out' \(defined at test_environment.py:\d+\)\. Call uid"):
        env.plan()
    env.get_config().enable_auto_generated_uids()
    assert env.plan()


def test_settings_without_effect_are_remembered(env):
    env.set_buffer_timeout(50)
    assert env.get_buffer_timeout() == 50
    assert env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC) is env
    assert env.is_changelog_state_backend_enabled() is None
    assert env.enable_changelog_state_backend(True).is_changelog_state_backend_enabled() is True
    assert env.is_chaining_of_operators_with_different_max_parallelism_enabled()
    with pytest.raises(ConfigurationError, match="buffer timeout"):
        env.set_buffer_timeout(-2)
    with pytest.raises(ConfigurationError, match="RuntimeExecutionMode"):
        env.set_runtime_mode("BATCH")


def test_batch_mode_says_that_it_runs_as_a_stream(env, caplog):
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert "every update" in caplog.text


def test_slot_sharing_groups_are_accepted(env):
    group = SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(64).build()
    assert env.register_slot_sharing_group(group) is env
    assert (group.get_name(), group.get_cpu_cores(), group.get_managed_memory()) == ("heavy", 2.0, None)
    assert group.get_task_heap_memory() == MemorySize(64 * 1024 * 1024)
    assert MemorySize.of_mebi_bytes(2048).get_gibi_bytes() == 2
    assert group == SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(64).build()


def test_python_files_become_importable(env, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "firesteel_test_helper.py").write_text("ANSWER = 42\n")
    env.add_python_file(str(tmp_path / "firesteel_test_helper.py"))
    env.add_python_file(f"file://{tmp_path}")
    assert sys.path[0] == str(tmp_path)
    assert sys.path.count(str(tmp_path)) == 1
    with pytest.raises(ConfigurationError, match="no such file"):
        env.add_python_file(str(tmp_path / "missing.zip"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda env: env.set_python_requirements("requirements.txt"), "pip install -r requirements.txt"),
        (lambda env: env.add_python_archive("data.zip"), "add_python_file"),
        (lambda env: env.set_python_executable("/usr/bin/python9"), "start the program with /usr/bin/python9"),
    ],
)
def test_what_cannot_be_done_says_what_to_do_instead(env, call, words):
    with pytest.raises(ConfigurationError, match=words):
        call(env)


def test_jars_are_accepted_with_a_warning(env, caplog):
    env.add_jars("file:///kafka.jar")
    env.add_classpaths("file:///classes")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_an_environment_can_be_closed_and_configured_from_the_start():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration().set_integer("parallelism.default", 4))
    assert env.get_parallelism() == 4
    env.close()
