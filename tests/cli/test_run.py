"""`firesteel run`: a program as Python runs it, with settings from outside."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from firesteel.coordinator.lineage import JobDirectory
from tests.cli.conftest import Command

JOB = """
    import sys
    from firesteel.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))
    return path


def test_a_program_is_main_with_its_own_arguments_and_imports(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "jobs" / "beside_the_job.py", "NAME = 'beside'\n")
    job = write(
        tmp_path / "jobs" / "job.py",
        """
        import pickle, sys
        import beside_the_job

        class Reading:
            def __eq__(self, other):
                return type(other) is Reading

        if __name__ == "__main__":
            assert pickle.loads(pickle.dumps(Reading())) == Reading()
            print(beside_the_job.NAME, sys.argv, __file__, sys.modules["__main__"].Reading is Reading)
        """,
    )
    code, out, err = command("run", job, "-p", "3", "--name=x")
    assert (code, err) == (0, "")
    assert out == f"beside {[str(job), '-p', '3', '--name=x']} {job} True\n"
    sys.modules.pop("beside_the_job")


def test_settings_reach_the_environment_and_the_program_wins(command: Command, tmp_path: Path) -> None:
    job = write(
        tmp_path / "job.py",
        JOB + "    print(env.get_parallelism(), env.settings('j').master, env.get_checkpoint_interval())\n"
        "    print(env.set_parallelism(9).get_parallelism())\n",
    )
    (tmp_path / "firesteel.yaml").write_text("execution.checkpointing.interval: 5 s\nparallelism.default: 1\n")
    code, out, _ = command("run", "-p", 2, "--master", "local[7]", "-Dexecution.checkpointing.interval=1 min", job)
    assert (code, out) == (0, "2 local[7] 60000\n9\n")
    code, out, _ = command("run", job)
    assert out.startswith("1 None 5000\n")


def test_python_files_can_be_imported_by_the_program_itself(command: Command, tmp_path: Path) -> None:
    write(tmp_path / "lib" / "a_library_of_mine.py", "ANSWER = 42\n")
    job = write(tmp_path / "job.py", "import a_library_of_mine\nprint(a_library_of_mine.ANSWER)\n")
    assert command("run", f"-Dpython.files={tmp_path / 'lib'}", job)[:2] == (0, "42\n")
    sys.modules.pop("a_library_of_mine")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py"], "nowhere.py cannot be run: there is no such file"),
        (["."], ". cannot be run: is a directory"),
        (["-s", "nowhere", "job.py"], "there is no checkpoint"),
        (["-s", ".", "job.py"], "is no checkpoint"),
        (["-Dexecution.savepoint.path=s4://b/c", "job.py"], "checkpoints cannot be kept in s4://b/c"),
        (["-Dparallelism.defualt=3", "job.py"], "did you mean 'parallelism.default'?"),
        (
            ["-Dexecution.checkpointing.interval=soon", "job.py"],
            "-Dexecution.checkpointing.interval: .* cannot be 'soon'",
        ),
        (["-Dx", "job.py"], "-Dx: write a setting as -Dkey=value"),
        (["-p", "many", "job.py"], "-p: parallelism.default cannot be 'many': it is no whole number"),
        (["-p", "2", "-Dparallelism.default=3", "job.py"], "-p says 2, and -Dparallelism.default says 3"),
        (["-s", "x", "--resume", "job.py"], "not allowed with argument"),
        (["--claim", "--no-claim", "job.py"], "not allowed with argument"),
        (
            ["--claim", "-Dexecution.state-recovery.claim-mode=NO_CLAIM", "job.py"],
            "--claim says CLAIM, and -Dexecution",
        ),
        (["-Drest.port=web", "job.py"], "rest.port cannot be 'web': write a port, or a range such as 8081-8090"),
        (["-d", "nowhere.py"], "nowhere.py cannot be run: there is no such file"),
        (["--sleep", "job.py"], "--sleep|required"),
        ([], "required: job.py"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_runs(
    command: Command, tmp_path: Path, arguments: list[str], words: str
) -> None:
    write(tmp_path / "job.py", "open('ran', 'w')\n")
    code, out, err = command("run", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert re.search(words, err), err
    assert not (tmp_path / "ran").exists()


def test_an_exception_of_the_program_looks_like_its_own(command: Command, tmp_path: Path) -> None:
    job = write(tmp_path / "job.py", "def f():\n    raise KeyError('mine')\n\nf()\n")
    code, _, err = command("run", job)
    assert code == 1
    lines = err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{job}", line 4, in <module>'
    assert lines[-1] == "KeyError: 'mine'"
    assert "firesteel" not in err.replace(str(tmp_path), "")


def test_a_syntax_error_is_shown_where_it_is(command: Command, tmp_path: Path) -> None:
    job = write(tmp_path / "job.py", "x = 1\nx = = 2\n")
    code, _, err = command("run", job)
    assert code == 1
    assert f'File "{job}", line 2' in err and err.endswith("SyntaxError: invalid syntax\n")
    assert "program.py" not in err


def test_a_failed_job_shows_the_users_frames_and_the_users_error(command: Command, tmp_path: Path) -> None:
    job = write(
        tmp_path / "job.py",
        JOB
        + """
    def divide(n):
        return 1 // n

    env.from_collection([1, 0]).map(divide).print()
    env.execute("failing")
    """,
    )
    code, _, err = command("run", job)
    assert code == 1
    assert "ZeroDivisionError" in err and "in divide" in err
    frames = [line for line in err.splitlines() if line.startswith("  File")]
    assert frames[0].startswith(f'  File "{job}"')
    assert not [line for line in frames if "coordinator" in line or "datastream" in line]


@pytest.mark.parametrize(("end", "code"), [("sys.exit()", None), ("sys.exit(7)", 7), ("raise KeyboardInterrupt", 130)])
def test_the_programs_own_end_is_the_commands(command: Command, tmp_path: Path, end: str, code: int | None) -> None:
    assert command("run", write(tmp_path / "job.py", f"import sys\n{end}\n"))[0] == code


def test_a_directory_that_cannot_be_used_is_one_line(command: Command, tmp_path: Path) -> None:
    job = write(tmp_path / "job.py", JOB + "    env.from_collection([1]).print()\n    env.execute('j')\n")
    (tmp_path / "file").write_text("")
    code, _, err = command(
        "run", "-Dexecution.checkpointing.interval=1 s", f"-Dexecution.checkpointing.dir={tmp_path}/file/below", job
    )
    assert code == 2
    assert err.count("\n") == 1 and "cannot be made or used: Not a directory" in err and "job.py, line 7" in err


def test_the_log_is_shown_until_the_program_has_its_own(command: Command, tmp_path: Path) -> None:
    text = JOB + "    import logging\n    logging.getLogger('firesteel').info('heard')\n"
    assert " INFO heard\n" in command("run", write(tmp_path / "job.py", text))[2]


# ---- checkpoints

COUNTING = """
    import sys
    from glob import glob
    from firesteel.datastream import StreamExecutionEnvironment
    from firesteel.datastream.connectors.number_seq import NumberSequenceSource
    from tests.support.slicing import Sliced

    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_source(Sliced(NumberSequenceSource(1, 10**9), 10), source_name="numbers")
    totals = numbers.key_by(lambda n: 0).reduce(lambda a, b: a + b)
    with totals.execute_and_collect("counting") as results:
        for total in results:
            print(total)
            if len(glob("c/*/inc-*/chk-*")) >= int(sys.argv[1]):
                break
"""


def settings(tmp_path: Path) -> list[str]:
    return [
        "-p", "1", "-Dexecution.checkpointing.interval=1 ms", f"-Dstate.checkpoints.dir={tmp_path}/c",
        "-Dstate.checkpoints.num-retained=1000",
    ]  # fmt: skip


def test_a_program_starts_from_the_checkpoint_it_is_told(command: Command, tmp_path: Path) -> None:
    job = write(tmp_path / "job.py", COUNTING)
    assert command("run", *settings(tmp_path), job, 5)[0] == 0
    directory = JobDirectory.open(str(tmp_path / "c"), "counting")
    third = directory.completed(1)[2]
    (position,) = third.metadata.positions.values()
    read = position["left"][0][0] - 1  # the numbers up to this one
    code, out, err = command("run", "-s", f"{third.path}/_metadata", *settings(tmp_path), job, 1)
    assert code == 0
    assert "goes back to checkpoint 3" in err
    assert int(out.split()[0]) == sum(range(1, read + 2))


def test_resuming_needs_something_to_resume(command: Command, tmp_path: Path) -> None:
    job = write(tmp_path / "job.py", COUNTING)
    code, _, err = command("run", "--resume", *settings(tmp_path), job, 1)
    assert (code, err.count("\n")) == (2, 1)
    assert "job 'counting' cannot resume: it has no checkpoint in" in err
    assert not (tmp_path / "c").exists()
    command("run", *settings(tmp_path), job, 3)
    newest = JobDirectory.open(str(tmp_path / "c"), "counting").latest()
    assert newest is not None
    code, out, err = command("run", "--resume", *settings(tmp_path), job, 1)
    assert code == 0
    assert f"goes on from checkpoint {newest.metadata.checkpoint}" in err
    (position,) = newest.metadata.positions.values()
    assert int(out.split()[0]) == sum(range(1, position["left"][0][0] + 1))
