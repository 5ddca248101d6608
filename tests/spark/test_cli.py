"""The command line with Spark: the classes of the program's main script reach the slots, and Ctrl-C ends it all."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

from firesteel.coordinator.lineage import JobDirectory

JOB = """
    import sys
    from dataclasses import dataclass
    from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment, ValueStateDescriptor
    from firesteel.datastream.connectors.number_seq import NumberSequenceSource


    @dataclass
    class Total:
        count: int = 0


    class Count(KeyedProcessFunction):
        def open(self, runtime_context):
            self.total = runtime_context.get_state(ValueStateDescriptor("total"))

        def process_element(self, value, ctx):
            total = self.total.value() or Total()
            total = Total(total.count + 1)
            self.total.update(total)
            if total.count % 100 == 0:
                yield total


    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_source(NumberSequenceSource(0, 10**9, rate_per_second=5000), None, "numbers").uid("numbers")
    numbers.key_by(lambda n: 0).process(Count()).uid("count").print()
    env.execute("endless")
"""


def start(job: Path, *options: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FIRESTEEL_") or k == "FIRESTEEL_HOME"}
    environment["PYTHONPATH"] = str(root)
    command = [sys.executable, "-m", "firesteel", "run", "-p1", "-Dexecution.checkpointing.interval=100 ms",
               "-Dstate.checkpoints.num-retained=1000", f"-Dstate.checkpoints.dir={job.parent / 'checkpoints'}",
               "-Dspark.ui.enabled=false", *options, str(job)]  # fmt: skip
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=job.parent,
        start_new_session=True,
    )  # fmt: skip


def interrupt_after(
    process: subprocess.Popen[str], checkpoints: Path, number: int, subtasks: int = 1
) -> tuple[int, list[str], str]:
    """Let it print until there are so many checkpoints and so many subtasks have, and press Ctrl-C in its terminal."""
    assert process.stdout is not None
    out, interrupted = [], False
    for line in process.stdout:
        out.append(line)
        printed = {line.split("> ")[0] for line in out}
        if not interrupted and len(printed) >= subtasks and len(list(checkpoints.glob("*/inc-*/chk-*"))) >= number:
            os.killpg(process.pid, signal.SIGINT)
            interrupted = True
    _, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_program_is_interrupted_and_started_from_an_older_checkpoint(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(dedent(JOB))
    code, out, err = interrupt_after(start(job), tmp_path / "checkpoints", 3)
    assert code == 130, err
    assert out[0] == "Total(count=100)\n"
    assert "Traceback" not in err
    directory = JobDirectory.open(str(tmp_path / "checkpoints"), "endless")
    older = directory.completed(1)[1]
    read = older.metadata.positions["numbers"]["left"][0][0]

    code, out, err = interrupt_after(start(job, "-s", older.path), tmp_path / "checkpoints", 1)
    assert code == 130, err
    assert f"goes back to checkpoint {older.metadata.checkpoint} " in err
    assert out[0] == f"Total(count={(read // 100 + 1) * 100})\n"


def test_a_program_is_started_from_a_checkpoint_with_another_parallelism(tmp_path: Path) -> None:
    job, keys = tmp_path / "job.py", 20
    by_key = JOB.replace("lambda n: 0", f"lambda n: n % {keys}")
    job.write_text(dedent(by_key.replace("yield total", "yield ctx.get_current_key(), total.count")))
    code, _, err = interrupt_after(start(job), tmp_path / "checkpoints", 6)
    assert code == 130, err
    checkpoint = JobDirectory.open(str(tmp_path / "checkpoints"), "endless").completed(1)[4]
    read = checkpoint.metadata.positions["numbers"]["left"][0][0]

    code, out, err = interrupt_after(start(job, "-p3", "-s", checkpoint.path), tmp_path / "checkpoints", 6, subtasks=3)
    assert code == 130, err
    subtasks: dict[int, str] = {}
    counts = {key: len(range(key, read, keys)) // 100 * 100 for key in range(keys)}  # as printed last
    for line in out:
        subtask, record = line.split("> ")
        key, count = ast.literal_eval(record)
        counts[key] += 100
        assert count == counts[key]
        assert subtasks.setdefault(key, subtask) == subtask
    assert set(subtasks.values()) == {"1", "2", "3"}
