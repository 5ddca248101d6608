"""Running a program in several ways, and saying how they differ."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from random import Random
from typing import Any
from unittest import mock

from firesteel.common import RestartStrategies
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.runtime import timestamps
from firesteel.testing import run_locally
from tests.differential.programs import Builder, Program

SEED = "FIRESTEEL_DIFFERENTIAL_SEED"


def fresh_seed() -> int:
    """A new one each time; set FIRESTEEL_DIFFERENTIAL_SEED to run the programs of an earlier one."""
    return int(os.environ.get(SEED) or int.from_bytes(os.urandom(4), "big"))


def describe(seed: int, size: int, **options: Any) -> tuple[StreamExecutionEnvironment, Program]:
    env = StreamExecutionEnvironment.get_execution_environment()
    return env, Builder(seed, env, size, **options).build()


def run_in_harness(seed: int, size: int, /, **options: Any) -> list[Any]:
    env, program = describe(seed, size)
    return run_locally(env, program.result, **options)


def run_on_spark(seed: int, size: int, *, checkpoints: bool) -> list[Any]:
    """On a real Spark, in a few epochs; with checkpoints one of them may meet an exception in user code."""
    with tempfile.TemporaryDirectory() as home:
        marker = os.path.join(home, "failed") if checkpoints else None
        env, program = describe(seed, size, cuts=[1 + size // 4, size // 5], marker=marker)
        if checkpoints:
            env.enable_checkpointing(1).set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 0))
            env.get_checkpoint_config().set_checkpoint_storage_dir(os.path.join(home, "checkpoints"))
        with program.result.execute_and_collect(f"program {seed}") as results:  # type: ignore[union-attr]
            return list(results)


def check_in_harness(seed: int, size: int = 300, watermarks_every: int = 20) -> int:
    """A program must give what plain Python says it does, and the same however it is cut and whatever fails. Gives the
    number of records compared."""
    random = Random(seed)
    with mock.patch.object(timestamps, "WATERMARK_RECORDS", watermarks_every):
        expected = run_in_harness(seed, size)
        check_model(seed, size, expected)
        for _ in range(2):
            cuts = _cuts(random, size)
            same(seed, size, expected, run_in_harness(seed, size, epoch_records=cuts), f"cut by {cuts}")
        failures = sorted(random.sample(range(1, 9), random.randint(1, 3)))
        options = {"epoch_records": _cuts(random, size), "fail_at": failures, "checkpoint_every": random.randint(1, 3)}
        same(seed, size, expected, run_in_harness(seed, size, **options), f"with {options}")
    return len(expected)


def _cuts(random: Random, size: int) -> list[int]:
    return [random.randint(1, max(2, size // 3)), *(random.randint(0, max(2, size // 3)) for _ in range(4))]


def check_on_spark(seed: int, size: int, *, checkpoints: bool) -> int:
    """A program must give the same on Spark as it does in the harness."""
    expected = run_in_harness(seed, size, epoch_records=_cuts(Random(seed), size))
    check_model(seed, size, expected)
    found = run_on_spark(seed, size, checkpoints=checkpoints)
    same(seed, size, expected, found, "on Spark" + (" with a failure" if checkpoints else ""))
    return len(expected)


def check_model(seed: int, size: int, found: list[Any]) -> None:
    _, program = describe(seed, size)
    for label, model in enumerate(program.models):
        if model is not None:
            expected = [(label, record) for record in model]
            mine = [each for each in found if each[0] == label]
            _compare(seed, size, program, label, expected, mine, "plain Python", "the harness")


def same(seed: int, size: int, expected: list[Any], found: list[Any], how: str) -> None:
    _, program = describe(seed, size)
    for label in range(len(program.ordered)):
        before = [each for each in expected if each[0] == label]
        _compare(seed, size, program, label, before, [each for each in found if each[0] == label], "uncut", how)


def _compare(
    seed: int, size: int, program: Program, label: int, expected: list[Any], found: list[Any], one: str, other: str
) -> None:
    where = f"program {seed} of size {size}, stream {label}: {', '.join(program.script)}"
    missing, surplus = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    assert not missing and not surplus, (
        f"{where}\n{one} has {len(expected)} records and {other} {len(found)}; only {one}: {list(missing)[:5]}, "
        f"only {other}: {list(surplus)[:5]}"
    )
    if program.ordered[label]:
        before, after = _by_key(expected), _by_key(found)
        for key, records in before.items():
            assert after[key] == records, f"{where}\nkey {key} is in another order {other} than {one}"


def _by_key(records: list[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for _, record in records:
        found.setdefault(record[0], []).append(record)
    return found
