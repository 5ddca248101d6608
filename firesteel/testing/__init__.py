"""Tests of functions and whole programs, in one process, without Spark, in milliseconds.

The code under test runs in the very slots that Spark would drive: the same operators, state, timers, exchanges,
checkpoints and state files. What is missing is Spark's shuffle and the processes, and time: the processing time stands
still unless the test moves it.

* `FunctionHarness` drives one function, call by call: records and watermarks in, outputs, state and timers out.
* `GraphHarness` runs a program that an environment describes, epochs cut wherever the test wants them, failures and
  restores included; `run_locally` does so in one call.

Both find what works on a developer's machine and fails in production: functions and records that cannot be pickled, and
state or emitted records that are changed in place (`MutationError`). See docs/testing.md.

Faults for jobs that run on Spark: `FailingSource`, `FailingSink`, `BlockingSink`, `ValidatingSink`, `CrashPoints`,
`SkewedClock`, and `Family`, which kills and stops processes of a job. See docs/reliability.md.
"""

from firesteel.testing.faults import CrashPoints, SkewedClock, flip_bit
from firesteel.testing.function_harness import FunctionHarness
from firesteel.testing.graph_harness import GraphHarness, run_locally
from firesteel.testing.inspection import Timer
from firesteel.testing.killer import Family
from firesteel.testing.sinks import BlockingSink, FailingSink, ValidatingSink
from firesteel.testing.snapshots import HarnessSnapshot
from firesteel.testing.sources import FailingSource, OpenEndedNumbers
from firesteel.testing.watching import MutationError

__all__ = [
    "BlockingSink",
    "CrashPoints",
    "FailingSink",
    "FailingSource",
    "Family",
    "FunctionHarness",
    "GraphHarness",
    "HarnessSnapshot",
    "MutationError",
    "OpenEndedNumbers",
    "SkewedClock",
    "Timer",
    "ValidatingSink",
    "flip_bit",
    "run_locally",
]
