from __future__ import annotations

from pathlib import Path

import pytest

from firesteel.common.config_files import ConfigFile, find_config_file
from firesteel.errors import ConfigurationError


def values(path: Path, flinks: bool = False) -> dict[str, str]:
    return {key: setting.value for key, setting in ConfigFile(str(path), flinks).settings().items()}


def test_mappings_may_be_nested_or_have_dots_and_values_stay_as_they_are_written(tmp_path):
    path = tmp_path / "firesteel.yaml"
    path.write_text(
        """
parallelism.default: 4
execution:
  checkpointing:
    interval: 10 s
    dir: "/data/check points"
  checkpointing.mode: exactly-once
pipeline:
  name: 1:30
  object-reuse: yes
  jars: [a.jar, b.jar]
  global-job-parameters: {since: 2024-01-01}
"""
    )
    assert values(path) == {
        "parallelism.default": "4",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": "/data/check points",
        "execution.checkpointing.mode": "exactly-once",
        "pipeline.name": "1:30",
        "pipeline.object-reuse": "true",
        "pipeline.jars": "a.jar;b.jar",
        "pipeline.global-job-parameters.since": "2024-01-01",
    }
    sources = {key: setting.source for key, setting in ConfigFile(str(path), False).settings().items()}
    assert sources["execution.checkpointing.interval"] == f"{path}, line 5"


def test_anchors_and_merges_are_followed(tmp_path):
    path = tmp_path / "firesteel.yaml"
    path.write_text("spark: &base {ui.enabled: false}\nother:\n  <<: *base\n  x: 1\n")
    assert values(path) == {"spark.ui.enabled": "false", "other.ui.enabled": "false", "other.x": "1"}


@pytest.mark.parametrize("text", ["", "# nothing but a comment\n", "---\n"])
def test_an_empty_file_sets_nothing(tmp_path, text):
    path = tmp_path / "firesteel.yaml"
    path.write_text(text)
    assert values(path) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: [1\n", "line 3: not YAML"),
        ("a: 1\n\tb: 2\n", "line 2: not YAML"),
        ("- a\n- b\n", "line 1: settings are written as"),
        ("a: 1\nb:\n", "line 2: b has no value"),
        ("a.b: 1\na:\n  b: 2\n", "line 3: a.b is set again, after .*line 1"),
        ("a: 1\na: 2\n", "line 2: a is set again"),
        ("? [x]\n: 1\n", "line 1: a key is a text"),
        ("a: [[1]]\n", "line 1: the value of a is a text or a list"),
        ("a: &a\n  b: *a\n", "contains itself"),
        ("a: !!python/object:os.system x\n", None),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, text, words):
    path = tmp_path / "firesteel.yaml"
    path.write_text(text)
    if words is None:
        assert values(path) == {"a": "x"}  # a text like any other: nothing is ever constructed
        return
    with pytest.raises(ConfigurationError, match=words) as caught:
        values(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "firesteel.yaml").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        values(tmp_path / "firesteel.yaml")
    (tmp_path / "config.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        values(tmp_path / "config.yaml")


def test_flinks_older_file_is_read_line_by_line_as_flink_does(tmp_path):
    path = tmp_path / "flink-conf.yaml"
    path.write_text(
        "# a comment\n"
        "jobmanager.rpc.address: localhost # here\n"
        "env.java.opts: -Da: b\n"
        "state.checkpoints.dir: file:///data/c\n"
        "state.savepoints.dir:\n"
        "not a setting\n"
        "  indented:  'quoted' \n"
    )
    assert values(path, flinks=True) == {
        "jobmanager.rpc.address": "localhost",
        "env.java.opts": "-Da: b",
        "state.checkpoints.dir": "file:///data/c",
        "indented": "quoted",
    }


def test_empty_values_in_flinks_file_are_passed_over(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("rest:\n  address:\nparallelism:\n  default: 1\n")
    assert values(path, flinks=True) == {"parallelism.default": "1"}


def test_the_nearest_file_counts_and_no_other(tmp_path):
    names = ("given/firesteel.yaml", "here/firesteel.yaml", "home/firesteel/firesteel.yaml", "flink/config.yaml",
             "flink/flink-conf.yaml")  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    environ = {
        "FIRESTEEL_CONF_DIR": str(tmp_path / "given"),
        "XDG_CONFIG_HOME": str(tmp_path / "home"),
        "FLINK_CONF_DIR": str(tmp_path / "flink"),
    }
    for name in names:
        found = find_config_file(environ, str(tmp_path / "here"))
        assert found == ConfigFile(str(tmp_path / name), name.startswith("flink"))
        if name.startswith("given"):
            del environ["FIRESTEEL_CONF_DIR"]
        (tmp_path / name).unlink()
    assert find_config_file(environ, str(tmp_path / "here")) is None
    with pytest.raises(ConfigurationError, match=r"FIRESTEEL_CONF_DIR is .*there is no firesteel.yaml"):
        find_config_file({"FIRESTEEL_CONF_DIR": str(tmp_path / "given")}, str(tmp_path))
