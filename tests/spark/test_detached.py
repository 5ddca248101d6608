"""A terminal session: a detached job on Spark, with everything that can happen to its driver and its terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(600)  # many commands, one after the other, and each is a process

JOB = """
    import sys
    from firesteel.common import Encoder
    from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment, ValueStateDescriptor
    from firesteel.datastream.connectors.file_system import FileSink
    from firesteel.datastream.connectors.number_seq import NumberSequenceSource

    VERSION = 1


    class Count(KeyedProcessFunction):
        def open(self, runtime_context):
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value, ctx):
            count = (self.count.value() or 0) + 1
            self.count.update(count)
            if count % 100 == 0:
                yield f"{VERSION} {ctx.get_current_key()} {count}"


    env = StreamExecutionEnvironment.get_execution_environment()
    source = NumberSequenceSource(0, 10**9, rate_per_second=2000)
    numbers = env.from_source(source, None, "numbers").uid("numbers")
    counted = numbers.key_by(lambda n: n % 4).process(Count()).uid("count")
    counted.sink_to(FileSink.for_row_format("out", Encoder.simple_string_encoder()).build()).uid("files")
    print("the program says hello")
    env.execute(sys.argv[1])
"""


class Terminal:
    """Runs `firesteel ...` as a person would."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "job.py").write_text(dedent(JOB))
        kept = {key: value for key, value in os.environ.items() if not key.startswith("FIRESTEEL_")}
        self.environment = {**kept, "PYTHONPATH": str(ROOT), "FIRESTEEL_HOME": str(directory / "home")}
        (directory / "firesteel.yaml").write_text(
            "execution.checkpointing.interval: 200 ms\nexecution.checkpointing.dir: checkpoints\n"
            f"execution.checkpointing.savepoint-dir: {directory}/savepoints\nspark.ui.enabled: false\nparallelism.default: 1\n"
        )

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "firesteel", *map(str, arguments)]

    def __call__(self, *arguments: object, code: int = 0) -> str:
        """What it prints, complaints last."""
        done = subprocess.run(
            self.command(*arguments), env=self.environment, cwd=self.directory, capture_output=True, text=True, timeout=200,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def submit(self, *arguments: object) -> str:
        """The job's id."""
        found = re.search(r"^Job has been submitted with JobID ([0-9a-f]{32})$", self("run", "-d", *arguments), re.M)
        assert found is not None
        return found[1]

    def jobs(self) -> dict[str, dict[str, Any]]:
        return {job["jid"]: job for job in json.loads(self("list", "-a", "--json"))}

    def counted(self) -> dict[str, list[tuple[int, int]]]:
        """Of each key, versions and counts in order; fails if one is there twice or missing."""
        lines = [line for file in self.directory.glob("out/**/part-*") for line in file.read_text().splitlines()]
        found: dict[str, list[tuple[int, int]]] = {}
        for version, key, count in map(str.split, lines):
            found.setdefault(key, []).append((int(count), int(version)))
        for key, counts in found.items():
            counts.sort()
            assert [count for count, _ in counts] == [100 * (n + 1) for n in range(len(counts))], (key, counts)
        return found

    def end_all(self) -> None:
        for job in self.jobs().values():
            if job["address"] is not None:  # it lives
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(job["pid"], signal.SIGKILL)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    yield found
    found.end_all()


def test_a_job_outlives_its_terminal_and_a_killed_driver_is_missed(terminal: Terminal) -> None:
    """The terminal is a real one, and hangs up."""
    child, screen = pty.fork()
    if child == 0:
        os.chdir(terminal.directory)
        os.execve(sys.executable, terminal.command("run", "-d", "job.py", "counting"), terminal.environment)
    shown = b""
    while b"JobID" not in shown or b"its log is" not in shown:
        shown += os.read(screen, 4096)
    os.close(screen)  # SIGHUP for everybody who belongs to it
    os.waitpid(child, 0)
    (job,) = terminal.jobs().values()
    assert job["jid"].encode() in shown and os.getsid(job["pid"]) == job["pid"]
    before = len(terminal.counted())
    wait_until(lambda: sum(map(len, terminal.counted().values())) > before, "output after the hangup")
    assert terminal.jobs()[job["jid"]]["state"] == "RUNNING"
    assert "the program says hello" in terminal("logs", "counting")

    os.kill(job["pid"], signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{job['pid']}").exists() or terminal.jobs()[job["jid"]]["lost"], "the death")
    listed = terminal("list", "-a")
    assert "FAILED (its driver died)" in listed and job["log"] in listed
    assert "no running jobs" in terminal("list")
    assert "is not running: it is FAILED (its driver died)" in terminal("cancel", "counting", code=2)

    again = terminal.submit("job.py", "counting")  # the same job, which goes on from its checkpoint
    assert again == job["jid"]
    seen = sum(map(len, terminal.counted().values()))
    wait_until(lambda: sum(map(len, terminal.counted().values())) > seen, "output of the second run")
    assert "goes on from checkpoint" in terminal("logs", again)
    terminal("cancel", again[:8])
    assert [job["state"] for job in terminal.jobs().values()] == ["CANCELED"]


def test_a_program_that_fails_before_its_job_says_so_at_once(terminal: Terminal) -> None:
    (terminal.directory / "bad.py").write_text("print('so far')\nraise KeyError('mine')\n")
    said = terminal("run", "-d", "bad.py", code=1)
    assert "so far" in said and "KeyError: 'mine'" in said and "failed before there was a job" in said
    (terminal.directory / "none.py").write_text("print('nothing to do')\n")
    said = terminal("run", "-d", "none.py")
    assert "nothing to do" in said and "ended without a job" in said
    assert "there is no such file" in terminal("run", "-d", "nowhere.py", code=2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = terminal("run", "-d", f"-Drest.port={port}", "job.py", "x", code=2)
        assert f"cannot listen on port {port} of 127.0.0.1" in said
    assert terminal.jobs() == {}


def test_ctrl_c_before_there_is_a_job_ends_the_program_too(terminal: Terminal) -> None:
    (terminal.directory / "slow.py").write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    waiting = subprocess.Popen(
        terminal.command("run", "-d", "slow.py"), env=terminal.environment, cwd=terminal.directory, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    logs = terminal.directory / "home" / "logs"
    log = wait_until(
        lambda: next((one for one in logs.glob("*.log") if "begun" in one.read_text()), None), "the program"
    )
    assert waiting.stderr is not None and "waiting for slow.py to submit its job" in waiting.stderr.readline()
    os.killpg(waiting.pid, signal.SIGINT)  # as the terminal does, to everybody who belongs to it
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 130 and "interrupted before there was a job" in said
    pid = int(re.findall(r"process (\d+)", said)[0])
    wait_until(lambda: "KeyboardInterrupt" in log.read_text() or "interrupted" in log.read_text(), "its end")
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "its end")


def test_two_jobs_at_once_savepoints_and_an_upgrade(terminal: Terminal) -> None:
    """run, list, savepoint, cancel -s, new code, run -s with another parallelism, stop, savepoint -d."""
    counting = terminal.submit("job.py", "counting")
    (terminal.directory / "other.py").write_text(
        (terminal.directory / "job.py").read_text().replace('"out"', '"elsewhere"')
    )
    other = terminal.submit("other.py", "other")
    assert {job["name"] for job in json.loads(terminal("list", "--json"))} == {"counting", "other"}
    port = terminal.jobs()[other]["address"]
    assert port != terminal.jobs()[counting]["address"]

    said = terminal("savepoint", "other", "by hand")
    by_hand = re.findall(r"Path: (.*)", said)[0]
    assert by_hand.startswith(f"{terminal.directory}/by hand/savepoint-{other[:6]}-")
    assert "count" in terminal("inspect", by_hand)
    assert "Cancelled job" in terminal("cancel", "other")

    wait_until(lambda: len(terminal.counted()) == 4, "output of every key")
    said = terminal("cancel", "-s", "counting")
    savepoint = re.findall(r"Path: (.*)", said)[0]
    assert savepoint.startswith(f"{terminal.directory}/savepoints/savepoint-{counting[:6]}-")
    before = terminal.counted()

    program = terminal.directory / "job.py"
    program.write_text(program.read_text().replace("VERSION = 1", "VERSION = 2"))
    again = terminal.submit("-s", savepoint, "-p", 2, "job.py", "counting, version 2")
    assert again != counting
    wait_until(
        lambda: any(version == 2 for counts in terminal.counted().values() for _, version in counts), "version 2"
    )
    assert "x2 (uid count)" in terminal("info", again)
    said = terminal("stop", again)
    second = re.findall(r"Path: (.*)", said)[0]
    after = terminal.counted()
    assert all(after[key][: len(before[key])] == before[key] for key in before)
    assert terminal.jobs()[again]["state"] == "FINISHED"
    assert json.loads(terminal("inspect", "--json", second))["operators"]["count"]["parallelism"] == 2
    for path in (savepoint, second, by_hand):
        assert "disposed" in terminal("savepoint", "-d", path)
        assert not Path(path).exists()
