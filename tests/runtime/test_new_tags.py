"""A side output whose tag does not exist before the function makes it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from firesteel.common import WatermarkStrategy
from firesteel.datastream import ProcessFunction, StreamExecutionEnvironment
from firesteel.testing import run_locally

class Splits(ProcessFunction):
    def process_element(self, value, ctx):
        if value == 2:
            from firesteel.datastream import OutputTag
            yield OutputTag("twos"), value
        else:
            yield value

env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
numbers = env.from_collection([1, 2, 3])
if {timed}:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    numbers = numbers.assign_timestamps_and_watermarks(strategy)
run_locally(env, numbers.process(Splits()))
"""


def outcome(timed: bool) -> str:
    code = PROGRAM.replace("{timed}", str(timed))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False).stderr


def test_the_first_record_for_it_is_told_from_the_stream_already() -> None:
    for timed in (False, True):
        assert "the side output 'twos' is not read by anyone" in outcome(timed)
