from __future__ import annotations

import subprocess
import sys

import pytest

from firesteel.common import RestartStrategies
from firesteel.connectors.collection import CollectionSource
from firesteel.datastream import StreamExecutionEnvironment, connectors
from firesteel.datastream.checkpoint_config import CheckpointConfig
from firesteel.datastream.connectors import NumberSequenceSource
from firesteel.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from firesteel.datastream.flink1_environment import ExternalizedCheckpointCleanup, TimeCharacteristic
from firesteel.datastream.state_backend import (
    EmbeddedRocksDBStateBackend,
    FsStateBackend,
    HashMapStateBackend,
    MemoryStateBackend,
    PredefinedOptions,
    RocksDBStateBackend,
)
from firesteel.errors import ConfigurationError, GraphError


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment()


def test_the_hash_map_is_the_default_backend(env):
    assert isinstance(env.get_state_backend(), HashMapStateBackend)
    backend = HashMapStateBackend()
    assert env.set_state_backend(backend).get_state_backend() is backend


def test_elements_are_a_collection(env):
    env.from_elements("a", "b", 3)
    (node,) = env.graph.nodes()
    assert isinstance(node.operator.source, CollectionSource) and node.operator.source.values == ["a", "b", 3]
    assert node.defined_at.startswith("test_flink1_names.py:")


def test_no_elements_are_refused(env):
    with pytest.raises(GraphError, match=r"from_elements\(\) takes at least one element"):
        env.from_elements()


def test_a_generated_sequence_is_one_from_a_number_to_another(env):
    source = env.graph[env.generate_sequence(1, 5).get_id()].operator.source
    assert isinstance(source, NumberSequenceSource) and (source.start, source.end) == (1, 5)


def test_the_restart_strategy_is_the_one_that_was_set(env):
    assert env.get_restart_strategy() == RestartStrategies.fall_back_restart()
    strategy = RestartStrategies.fixed_delay_restart(3, 10)
    assert env.set_restart_strategy(strategy).get_restart_strategy() is strategy


def test_connectors_of_the_package_are_imported_when_somebody_asks_for_them_and_their_clients_later():
    code = """
import sys
from firesteel.datastream import connectors
assert not any("connectors.kafka" in module or "connectors.jdbc" in module for module in sys.modules)
for name in ("FlinkKafkaConsumer", "FlinkKafkaProducer", "KafkaSource", "Semantic", "JdbcSink", "JdbcConnectionOptions"):
    assert name in dir(connectors) and getattr(connectors, name).__name__ == name
from firesteel.datastream.connectors import FlinkKafkaConsumer, FlinkKafkaProducer
assert not sys.modules.keys() & {"confluent_kafka", "kafka", "psycopg", "pymysql"}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_no_connector_is_called_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'FlinkKafkaTable'"):
        _ = connectors.FlinkKafkaTable


def test_the_file_system_backend_sets_the_checkpoint_directory(env):
    env.set_state_backend(FsStateBackend("file:///tmp/checkpoints"))
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() == "file:///tmp/checkpoints"
    assert env.get_state_backend().get_checkpoint_path() == "file:///tmp/checkpoints"


def test_the_memory_backend_keeps_checkpoints_no_longer_than_the_job(env):
    env.get_checkpoint_config().set_checkpoint_storage_dir("/tmp/c")
    env.set_state_backend(MemoryStateBackend())
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() is None


def test_the_hash_map_leaves_the_checkpoint_directory_alone(env):
    env.get_checkpoint_config().set_checkpoint_storage_dir("/tmp/c")
    env.set_state_backend(HashMapStateBackend())
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() == "/tmp/c"


def test_rocksdb_is_chosen_under_its_old_name_with_a_place_for_checkpoints(env):
    env.set_state_backend(RocksDBStateBackend("file:///tmp/c", True))
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() == "file:///tmp/c"
    assert env.settings("job").rocksdb is not None
    env.set_state_backend(HashMapStateBackend())
    assert env.settings("job").rocksdb is None


@pytest.mark.parametrize("backend", [RocksDBStateBackend("file:///tmp/c", True), EmbeddedRocksDBStateBackend()])
def test_rocksdb_that_is_not_installed_is_refused_with_the_command_that_installs_it(env, backend, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"pip install firesteel\[rocksdb\]"):
        env.set_state_backend(backend)
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() is None


def test_rocksdb_can_be_described():
    backend = RocksDBStateBackend("file:///tmp/c", True)
    backend.set_db_storage_paths("/ssd1", "/ssd2")
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    assert backend.is_incremental_checkpoints_enabled()
    assert backend.get_db_storage_paths() == ["/ssd1", "/ssd2"]
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED


def test_what_is_no_backend_is_refused(env):
    with pytest.raises(ConfigurationError, match="StateBackend"):
        env.set_state_backend("rocksdb")


def test_externalized_checkpoints_are_the_retention():
    config = CheckpointConfig()
    cleanup = ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION
    assert config.enable_externalized_checkpoints(cleanup) is config
    retain = ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    assert config.get_externalized_checkpoint_retention() is config.get_externalized_checkpoint_cleanup() is retain
    config.set_externalized_checkpoint_cleanup(ExternalizedCheckpointCleanup.DELETE_ON_CANCELLATION)
    delete = ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION
    assert config.get_externalized_checkpoint_retention() is delete


def test_preferring_checkpoints_is_accepted():
    config = CheckpointConfig()
    assert not config.is_prefer_checkpoint_for_recovery()
    assert config.set_prefer_checkpoint_for_recovery(True).is_prefer_checkpoint_for_recovery()


def test_time_characteristics_are_accepted_but_ingestion_time(env):
    env.set_stream_time_characteristic(TimeCharacteristic.ProcessingTime)
    assert env.get_stream_time_characteristic() is TimeCharacteristic.ProcessingTime
    with pytest.raises(ConfigurationError, match="WatermarkStrategy"):
        env.set_stream_time_characteristic(TimeCharacteristic.IngestionTime)
