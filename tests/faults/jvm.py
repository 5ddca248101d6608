"""JVM options that make Spark start in a third of the processor time: starts are most of what fault tests cost.

Most of a start is loading and verifying 10,000 classes. A class data archive does that once: it is made by the first test
that needs it, beside the virtual environment's packages, and made again when Java or PySpark change.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from firesteel.engine.java import find_java

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PROGRAM = """
from firesteel.common import Configuration
from firesteel.engine import spark_private
spark_private.end_jvm.__defaults__ = (100.0,)  # the archive is written when the JVM ends
from firesteel.datastream import StreamExecutionEnvironment
configuration = Configuration()
configuration.set_string("spark.ui.enabled", "false")
env = StreamExecutionEnvironment.get_execution_environment(configuration)
env.set_parallelism(2)
env.from_collection(list(range(100))).key_by(lambda n: n % 3).map(lambda n: n).print()
env.execute("archive")
"""


@functools.cache
def java_options() -> str:
    """For JAVA_TOOL_OPTIONS."""
    java = find_java()
    if java.version < 17 or not os.access(sys.prefix, os.W_OK):
        return BASE
    what = f"{java.home} {java.version} {importlib.metadata.version('pyspark')} {sys.prefix}"
    archive = Path(sys.prefix) / f"spark-{zlib.crc32(what.encode()):08x}.jsa"
    if not archive.exists():
        _make(archive)
    return f"{BASE} -XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def _make(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="fscds-", dir="/tmp") as home:
        draft = archive.with_suffix(f".{os.getpid()}.draft")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FIRESTEEL_") or k == "FIRESTEEL_HOME"}
        options = f"{BASE} -XX:ArchiveClassesAtExit={draft} -Xlog:cds=off -Xlog:cds+dynamic=off"
        environment |= {"PYTHONPATH": str(REPOSITORY), "TMPDIR": home, "JAVA_TOOL_OPTIONS": options}
        try:
            subprocess.run([sys.executable, "-c", PROGRAM], env=environment, cwd=home, capture_output=True, timeout=120)
            if draft.exists() and draft.stat().st_size > 20_000_000:  # else it is that of Spark's launcher
                os.replace(draft, archive)
        finally:
            draft.unlink(missing_ok=True)
