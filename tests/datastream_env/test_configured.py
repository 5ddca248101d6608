"""Settings from outside the program: the nearer wins."""

from __future__ import annotations

import logging

import pytest

from firesteel.common import Configuration
from firesteel.common.config_files import Setting
from firesteel.common.option import variable_of
from firesteel.datastream import StreamExecutionEnvironment, configured
from firesteel.datastream.configured import hand_over, settings_in_effect
from firesteel.datastream.option_table import OLDER, OPTIONS
from firesteel.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FLINK_CONF_DIR", raising=False)
    monkeypatch.setattr(configured, "_skipped", set())
    yield
    hand_over({})


def given_on_command_line(**settings: str) -> None:
    hand_over({key: Setting(value, f"-D{key}") for key, value in settings.items()})


def test_the_nearer_source_wins(monkeypatch, tmp_path):
    get = StreamExecutionEnvironment.get_execution_environment
    (tmp_path / "firesteel.yaml").write_text("parallelism.default: 3\n")
    assert get().get_parallelism() == 3
    monkeypatch.setenv("FIRESTEEL_PARALLELISM_DEFAULT", "4")
    assert get().get_parallelism() == 4
    given_on_command_line(**{"parallelism.default": "5"})
    assert get().get_parallelism() == 5
    assert get(Configuration().set_integer("parallelism.default", 6)).get_parallelism() == 6
    assert get().set_parallelism(7).get_parallelism() == 7
    assert StreamExecutionEnvironment().get_parallelism() not in (3, 4, 5)  # it takes only what it is given


def test_a_setting_under_its_older_name_is_the_same_setting(monkeypatch, tmp_path):
    (tmp_path / "firesteel.yaml").write_text("state.checkpoints.dir: /far\n")
    given_on_command_line(**{"execution.checkpointing.dir": "/near"})
    assert settings_in_effect() == {"execution.checkpointing.dir": Setting("/near", "-Dexecution.checkpointing.dir")}
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration().set_string("state.checkpoints.dir", "/here")
    )
    assert env.get_checkpoint_config().get_checkpoint_storage_dir() == "/here"


def test_one_source_that_says_two_things_is_refused(tmp_path):
    (tmp_path / "firesteel.yaml").write_text("state.checkpoints.dir: /a\nexecution.checkpointing.dir: /b\n")
    with pytest.raises(ConfigurationError, match=r"line 2: .* is set to '/b', and by .*line 1 to '/a'"):
        settings_in_effect()


def test_parameters_are_set_one_by_one(tmp_path):
    (tmp_path / "firesteel.yaml").write_text("pipeline:\n  global-job-parameters:\n    city: Oslo\n    since: 1:30\n")
    given_on_command_line(**{"pipeline.global-job-parameters": "city:Bergen,more:x"})
    env = StreamExecutionEnvironment.get_execution_environment()
    assert env.get_config().get_global_job_parameters() == {"city": "Bergen", "since": "1:30", "more": "x"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "parallelism:\n  defualt: 3\n",
            r"firesteel.yaml, line 2: unknown setting .*did you mean 'parallelism.default'",
        ),
        ("parallelism:\n  default: many\n", r"firesteel.yaml, line 2: parallelism.default cannot be 'many'"),
        ("parallelism.default: 0\n", r"firesteel.yaml, line 1: parallelism must be .* at least 1"),
        ("a: 1\nexecution.checkpointing.intervall: 1 s\n", r"line 1: unknown setting 'a'"),
        ("state.backend: papyrus\n", r"line 1: .*known are hashmap, rocksdb"),
        ("pipeline.global-job-parameters: x\n", r"line 1: .*not of the form key:value"),
        ("restart-strategy: hope\n", r"line 1: restart-strategy.type cannot be 'hope': known are none, fixed-delay"),
        ("execution.checkpointing.interval: 10 parsecs\n", r"line 1: .*There is no unit 'parsecs'"),
        ("execution.checkpointing.data-inline-threshold: 20 km\n", r"line 1: .*There is no unit 'km'"),
    ],
)
def test_mistakes_in_a_file_are_refused_with_their_line(tmp_path, text, words):
    (tmp_path / "firesteel.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match=words):
        StreamExecutionEnvironment.get_execution_environment()


def test_a_misspelt_variable_is_refused_and_a_strangers_is_not(monkeypatch):
    monkeypatch.setenv("FIRESTEEL_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("FIRESTEEL_PORT_8081_TCP_ADDR", "10.0.0.1")
    assert settings_in_effect() == {}
    monkeypatch.setenv("FIRESTEEL_EXECUTION_CHECKPOINTING_INTERVALL", "1 s")
    with pytest.raises(ConfigurationError, match=r"did you mean FIRESTEEL_EXECUTION_CHECKPOINTING_INTERVAL\?"):
        settings_in_effect()


def test_a_bad_value_in_a_variable_is_refused_with_its_name(monkeypatch):
    monkeypatch.setenv("FIRESTEEL_PROGRESS", "perhaps")
    with pytest.raises(
        ConfigurationError, match=r"environment variable FIRESTEEL_PROGRESS: firesteel.progress cannot be"
    ):
        StreamExecutionEnvironment.get_execution_environment()


def test_every_setting_has_a_variable_of_its_own():
    keys = [*OPTIONS, *OLDER]
    assert len({variable_of(key) for key in keys}) == len(keys)


@pytest.mark.parametrize("name", ["config.yaml", "flink-conf.yaml"])
def test_flinks_file_is_read_as_it_is(monkeypatch, tmp_path, caplog, name):
    monkeypatch.setenv("FLINK_CONF_DIR", str(tmp_path))
    (tmp_path / name).write_text(
        "parallelism.default: 2\n"
        "taskmanager.memory.process.size: 1728m\n"
        "python.executable: /opt/python\n"
        "some.other.key: 1\n"
        "execution.checkpointing.intervall: 1 s\n"
        "restart-strategy.type: fixed-delay\n"
    )
    with caplog.at_level(logging.INFO, "firesteel"):
        for _ in range(2):
            assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 2
    mentioned, warned = [record.getMessage() for record in caplog.records]  # once, and not for each environment
    assert mentioned.endswith(
        "4 settings mean nothing here: execution.checkpointing.intervall, python.executable, some.other.key, "
        "taskmanager.memory.process.size"
    )
    assert "did you mean 'execution.checkpointing.interval'" in warned


def test_the_defaults_in_the_table_are_those_of_an_environment():
    defaults = {key: option.default for key, option in OPTIONS.items() if option.default}
    env = StreamExecutionEnvironment(Configuration.from_dict(defaults))
    assert env.settings("job") == StreamExecutionEnvironment().settings("job")
    assert env._job_name == StreamExecutionEnvironment()._job_name
    assert env.is_chaining_enabled() and env.get_buffer_timeout() == 100


def test_where_to_start_can_be_set():
    env = StreamExecutionEnvironment(
        Configuration.from_dict(
            {"execution.savepoint.path": "/c/chk-5", "execution.savepoint.ignore-unclaimed-state": "true"}
        )
    )
    start = env.settings("job").start
    assert (start.restore_from, start.allow_non_restored_state, start.must_resume) == ("/c/chk-5", True, False)
    assert StreamExecutionEnvironment(Configuration.from_dict({"firesteel.resume": "true"})).start.must_resume
