"""The job that fault tests kill: numbers, counted and summed per key, to two exactly-once file sinks.

Two sinks, so that there is a moment between their commits. What it must write is told by tests/faults/oracle.py.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from dataclasses import replace

from firesteel.common import Configuration, Encoder, RestartStrategies, Time, WatermarkStrategy
from firesteel.common.storage import local
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment, ValueStateDescriptor
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.datastream.connectors.number_seq import NumberSequenceSource
from firesteel.datastream.window import TumblingEventTimeWindows
from firesteel.errors import FiresteelError

WINDOW = 1000  # of numbers, which are their own timestamps


class CountAndSum(KeyedProcessFunction):
    """For every record its key, the how-manieth of that key it is, and the key's sum so far."""

    def __init__(self, dies_while_writing):
        self.dies_while_writing = dies_while_writing

    def open(self, runtime_context):
        if self.dies_while_writing and runtime_context.get_attempt_number() == 0:
            local.write_durable = _die_while_writing
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        total = (self.total.value() or 0) + value
        self.count.update(count)
        self.total.update(total)
        yield f"{ctx.get_current_key()},{count},{total}"


def _die_while_writing(path, data):
    """A disk so slow that the epoch is long over, and then the slot dies."""
    threading.Event().wait(3)
    os.kill(os.getpid(), signal.SIGKILL)


def arguments(given=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--checkpoints")
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--interval", type=int, default=200)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--retained", type=int, default=1)
    parser.add_argument("--attempts", type=int, default=10)
    parser.add_argument("--name", default="sensor")
    parser.add_argument("--uid", default="sums")
    parser.add_argument("--die-while-writing", action="store_true")
    parser.add_argument("--cancel-on-stdin", action="store_true")
    parser.add_argument("--windows", choices=["plain", "combined"], help="also sums of windows, to a sink of their own")
    parser.add_argument("--savepoints", help="where they go that are asked for on standard input")
    parser.add_argument("--start-from")
    parser.add_argument("--claim", action="store_true")
    return parser.parse_args(given)


def program(args):
    """The job, described and ready to be executed."""
    keys = args.keys
    configuration = Configuration()
    configuration.set_string("spark.ui.enabled", "false")  # a start of Spark is most of what these tests cost
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(args.parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(args.attempts, 100))
    env.enable_checkpointing(args.interval)
    env.get_checkpoint_config().set_max_retained_checkpoints(args.retained)
    env.start = replace(env.start, restore_from=args.start_from, claim=args.claim)
    if args.checkpoints:
        env.get_checkpoint_config().set_checkpoint_storage_dir(args.checkpoints)

    def sink(name):
        return FileSink.for_row_format(f"{args.out}/{name}", Encoder.simple_string_encoder()).build()

    numbers = env.from_source(NumberSequenceSource(0, args.records - 1, rate_per_second=args.rate), None, "numbers")
    numbers.sink_to(sink("numbers"))
    sums = numbers.key_by(lambda number: number % keys).process(CountAndSum(args.die_while_writing)).uid(args.uid)
    sums.sink_to(sink("sums"))
    if args.windows:
        in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
        timed = numbers.assign_timestamps_and_watermarks(in_order).key_by(lambda number: number % keys)
        windows = timed.window(TumblingEventTimeWindows.of(Time.milliseconds(WINDOW)))
        windows.pre_combine(args.windows == "combined").reduce(
            lambda a, b: a + b,
            lambda key, window, totals: [f"{key},{window.start},{total}" for total in totals],
        ).uid("windows").sink_to(sink("windows"))
    return env


def obey(client, directory):
    """Take a savepoint for each line that says how."""
    for line in sys.stdin:
        if line == "stop\n":
            taken = client.stop_with_savepoint(False, directory)
        elif line == "cancel\n":
            taken = client.cancel_with_savepoint(directory)
        else:
            taken = client.trigger_savepoint(directory)
        try:
            logging.info("taken: %s", taken.result())
        except FiresteelError as error:
            logging.info("not taken: %s", error)


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    args = arguments()
    env = program(args)
    if args.savepoints:
        client = env.execute_async(args.name)
        threading.Thread(target=obey, args=(client, args.savepoints), daemon=True).start()
        client.get_job_execution_result().result()
        return
    if not args.cancel_on_stdin:
        env.execute(args.name)
        return
    client = env.execute_async(args.name)

    def cancel_when_told():
        sys.stdin.readline()
        client.cancel()

    threading.Thread(target=cancel_when_told, daemon=True).start()
    client.get_job_execution_result().result()


if __name__ == "__main__":
    main()
