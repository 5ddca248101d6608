from __future__ import annotations

import os
from pathlib import Path

import pytest

from firesteel.connectors.file_paths import discover, local_path
from firesteel.errors import ConfigurationError


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")


def found(root: Path, *paths: str) -> list[str]:
    return [os.path.relpath(path, root) for path in discover([str(root / path) for path in paths])]


def test_a_directory_stands_for_all_files_below_it_except_hidden_ones(tmp_path: Path) -> None:
    make(tmp_path, "b", "a/z", "a/y/1", ".hidden", "_SUCCESS", "_temporary/part", "a/.tmp/part")
    assert found(tmp_path, "") == ["a/y/1", "a/z", "b"]


def test_wildcards_match_files_and_directories(tmp_path: Path) -> None:
    make(tmp_path, "day=1/a.csv", "day=2/b.csv", "day=2/_b.csv", "other/c.csv")
    assert found(tmp_path, "day=*") == ["day=1/a.csv", "day=2/b.csv"]
    assert found(tmp_path, "**/*.csv") == ["day=1/a.csv", "day=2/b.csv", "other/c.csv"]
    assert found(tmp_path, "day=2/_*") == ["day=2/_b.csv"]


def test_an_existing_name_with_brackets_is_no_wildcard(tmp_path: Path) -> None:
    make(tmp_path, "a[1]", "a1")
    assert found(tmp_path, "a[1]") == ["a[1]"]


def test_a_file_named_itself_may_be_hidden(tmp_path: Path) -> None:
    make(tmp_path, "_file")
    assert found(tmp_path, "_file") == ["_file"]


def test_a_file_found_twice_counts_once(tmp_path: Path) -> None:
    make(tmp_path, "a", "b")
    assert found(tmp_path, "b", "", "a") == ["b", "a"]


def test_a_link_to_a_parent_directory_ends(tmp_path: Path) -> None:
    make(tmp_path, "a")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert found(tmp_path, "") == ["a"]


@pytest.mark.parametrize("path", ["missing", "missing*", "missing/"])
def test_a_missing_path_is_refused_by_name(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigurationError, match="missing"):
        found(tmp_path, path)


def test_file_uris_are_local_paths() -> None:
    assert local_path("file:///tmp/a%20b") == "/tmp/a b"
    assert local_path("file:/tmp/a") == "/tmp/a"
    assert local_path("file://localhost/tmp/a") == "/tmp/a"
    assert local_path("relative") == os.path.abspath("relative")


@pytest.mark.parametrize("path", ["s3://bucket/key", "hdfs://host/path", "file://host/path"])
def test_other_file_systems_are_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match="local"):
        local_path(path)
