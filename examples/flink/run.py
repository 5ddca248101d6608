"""Run an example that comes with PyFlink, with nothing but its imports changed.

    python examples/flink/run.py state_access
    python examples/flink/run.py word_count --output /tmp/words
    python examples/flink/run.py windowing/tumbling_time_window

The sources of apache-flink are where `make setup` puts them: in the virtual environment that this Python is of.
"""

import sys
from pathlib import Path

EXAMPLES = Path(sys.prefix) / "flink" / "pyflink" / "examples" / "datastream"


def source_of(name):
    """The example's text, importing firesteel where it imported pyflink."""
    path = EXAMPLES / f"{name}.py"
    if not path.exists():
        names = sorted(str(each.relative_to(EXAMPLES).with_suffix("")) for each in EXAMPLES.rglob("*.py"))
        known = ", ".join(names) or "none: call `make setup` first"
        raise SystemExit(f"there is no {path}; the examples are {known}")
    return path.read_text().replace("pyflink", "firesteel")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    del sys.argv[0]  # the rest is the example's own
    exec(compile(source_of(sys.argv[0]), f"{sys.argv[0]}.py", "exec"))
