"""`firesteel config`: what is in effect, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from firesteel.cli.config import reference
from firesteel.datastream.option_table import OPTIONS
from tests.cli.conftest import Command

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_every_setting_is_shown_with_where_it_comes_from(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "firesteel.yaml").write_text(
        "state.checkpoints.dir: /data/c\nparallelism.default: 2\nspark.hadoop.fs.s3a.secret.key: hush\n"
    )
    monkeypatch.setenv("FIRESTEEL_PARALLELISM_DEFAULT", "3")
    monkeypatch.setenv("FIRESTEEL_TOKEN", "open sesame")
    code, out, err = command("config", "-Dpipeline.name=nightly", "--json")
    assert (code, err) == (0, "")
    found = {row["key"]: (row["value"], row["source"]) for row in json.loads(out)}
    assert found["execution.checkpointing.dir"] == ("/data/c", f"{tmp_path / 'firesteel.yaml'}, line 1")
    assert found["parallelism.default"] == ("3", "environment variable FIRESTEEL_PARALLELISM_DEFAULT")
    assert found["pipeline.name"] == ("nightly", "-Dpipeline.name")
    assert found["execution.checkpointing.timeout"] == ("10 min", "default")
    assert found["execution.checkpointing.interval"] == (None, "default")
    assert found["spark.hadoop.fs.s3a.secret.key"][0] == "******"
    assert found["rest.token"] == ("******", "environment variable FIRESTEEL_TOKEN")
    assert {key for key, option in OPTIONS.items() if not option.flinks} <= found.keys()


def test_the_table_is_for_people(command: Command) -> None:
    code, out, _ = command("config", "-Dparallelism.default=3", "--set")
    assert code == 0
    assert [line.split() for line in out.splitlines()] == [
        ["KEY", "VALUE", "FROM"],
        ["parallelism.default", "3", "-Dparallelism.default"],
    ]
    assert command("config", "--set")[:2] == (0, "nothing is set\n")


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ("-Dparallelism.default=0", "-Dparallelism.default: parallelism must be"),
        ("-Dcheckpointing.interval=1 s", "did you mean 'execution.checkpointing.interval'"),
    ],
)
def test_mistakes_are_one_line(command: Command, definition: str, words: str) -> None:
    code, out, err = command("config", definition)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_broken_file_is_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "firesteel.yaml").write_text("a: [1\n")
    code, _, err = command("config")
    assert (code, err.count("\n")) == (2, 1)
    assert "line 2: not YAML" in err


def test_the_documentation_lists_the_settings_there_are() -> None:
    """If not: put what `firesteel config --markdown` prints between the two marks."""
    _, _, rest = DOCS.read_text().partition("<!-- settings: firesteel config --markdown -->\n")
    shown, mark, _ = rest.partition("\n<!-- end -->")
    assert mark and shown.strip() == reference()
