"""The jobs that chaos is made for: numbers, counted and summed per key, to one or two exactly-once sinks. Those from Kafka and
to servers are in served.py.

What they must write is told by tests/chaos/oracle.py. Environment: `CHAOS_BREAK` breaks the engine on purpose, see broken.py.
With `--many`, starts one job for each list of arguments on standard input, all on one Spark.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys

from firesteel.common import Configuration, Encoder, RestartStrategies, Types, WatermarkStrategy
from firesteel.datastream import KeyedProcessFunction, OutputTag, StreamExecutionEnvironment, ValueStateDescriptor
from firesteel.datastream.connectors.file_system import FileSink
from firesteel.testing.faults import SkewedClock, crash_point
from firesteel.testing.sources import OpenEndedNumbers
from tests.chaos.jobs import broken, served
from tests.chaos.plan import EVERY, KAFKA, SERVED
from tests.chaos.store import IdempotentAheadSink, StoreSink

NUMBERS = OutputTag("numbers", Types.STRING())


class CountAndSum(KeyedProcessFunction):
    """For every record its key, the how-manieth of that key it is, and the key's sum so far."""

    def __init__(self, clock):
        self.clock = clock

    def open(self, runtime_context):
        SkewedClock(self.clock).install()
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.total = runtime_context.get_state(ValueStateDescriptor("total"))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        crash_point("mid-record")
        total = (self.total.value() or 0) + value
        self.total.update(total)
        yield f"{ctx.get_current_key()},{count},{total}"


class CountSumAndRemember(CountAndSum):
    """Gives every number as well, aside and later: by a timer."""

    DELAY = 600

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value + self.DELAY)
        yield from super().process_element(value, ctx)

    def on_timer(self, timestamp, ctx):
        yield NUMBERS, str(timestamp - self.DELAY)


def arguments(given=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=EVERY, required=True)
    parser.add_argument("--home", required=True, help="output, and the files by which the job is told things")
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--keys", type=int, required=True)
    parser.add_argument("--rate", type=float)
    for server in ("--brokers", "--input", "--output", "--url", "--user", "--password"):
        parser.add_argument(server)
    parser.add_argument("--interval", type=int, default=150)
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--backend", choices=("hashmap", "rocksdb"), default="hashmap")
    parser.add_argument("--timeout", type=int, default=60_000)
    parser.add_argument("--tolerable", type=int)
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--retained", type=int, default=1)
    return parser.parse_args(given)


def program(args):
    keys, home = args.keys, args.home
    configuration = Configuration()
    configuration.set_string("spark.ui.enabled", "false")  # a start of Spark is most of what chaos costs
    configuration.set_string("state.backend.type", args.backend)
    if args.kind == "rocksdb":  # little memory, so that most entries and timers have been to the database
        configuration.set_string("state.backend.rocksdb.memory.fixed-per-slot", "100 kb")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(args.parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(args.attempts, 20))
    env.enable_checkpointing(args.interval)
    config = env.get_checkpoint_config()
    config.set_max_retained_checkpoints(args.retained)
    config.set_checkpoint_storage_dir(args.checkpoints)
    config.set_checkpoint_timeout(args.timeout)
    if args.tolerable is not None:
        config.set_tolerable_checkpoint_failure_number(args.tolerable)

    def file_sink(name):
        return FileSink.for_row_format(f"{home}/{name}", Encoder.simple_string_encoder()).build()

    if args.kind in SERVED:
        if args.kind in KAFKA:
            served.sums_to_servers(env, args, CountAndSum(f"{home}/clock"))
        else:
            served.windows_to_database(env, args)
        return env
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
    numbers = env.from_source(OpenEndedNumbers(f"{home}/end", args.rate), times, "numbers").uid("source")
    by_key = numbers.key_by(lambda number: number % keys)
    if args.kind == "rocksdb":
        sums = by_key.process(CountSumAndRemember(f"{home}/clock")).uid("sums")
        sums.get_side_output(NUMBERS).sink_to(file_sink("numbers")).uid("files")
        sums.add_sink(StoreSink(f"{home}/store")).uid("store")
        return env
    sums = by_key.process(CountAndSum(f"{home}/clock")).uid("sums")
    if args.kind == "file":
        sums.sink_to(file_sink("sums")).uid("files")
    elif args.kind == "transactions":
        sums.add_sink(StoreSink(f"{home}/store")).uid("store")
    elif args.kind == "ahead":
        sums.add_sink(IdempotentAheadSink(f"{home}/store")).uid("ahead")
    else:
        numbers.sink_to(file_sink("numbers")).uid("files")
        sums.add_sink(StoreSink(f"{home}/store")).uid("store")
    return env


def main():
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    if sys.argv[1:] == ["--many"]:
        outcomes = []
        for given in json.load(sys.stdin):
            try:
                program(arguments(given)).execute("chaos")
            except Exception as error:  # noqa: BLE001  whatever it is, the caller wants to see it
                outcomes.append(f"{type(error).__name__}: {error}")
            else:
                outcomes.append(None)
        json.dump(outcomes, sys.stdout)
        return
    args = arguments()
    SkewedClock(f"{args.home}/clock").install()
    broken.install(os.environ.get("CHAOS_BREAK", ""))
    program(args).execute("chaos")


if __name__ == "__main__":
    main()
