"""The job of the demo: an alert for every jump of a sensor's temperature, written exactly once.

Knows nothing of being killed. Started again with the same checkpoint directory, it goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from demo.pacing import Paced
from demo.readings import LINE
from firesteel.common import Configuration, Encoder, Types
from firesteel.datastream import (
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
    ValueStateDescriptor,
)
from firesteel.datastream.connectors.file_system import CsvReaderFormat, FileSink, FileSource


class JumpAlert(KeyedProcessFunction):
    """Remembers each sensor's last temperature and how many readings it has sent."""

    def __init__(self, jump: float) -> None:
        self.jump = jump

    def open(self, runtime_context: RuntimeContext) -> None:
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.DOUBLE()))
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, reading: tuple[str, float], ctx: KeyedProcessFunction.Context) -> Iterator[str]:
        sensor, temperature = reading
        last, count = self.last.value(), (self.count.value() or 0) + 1
        self.last.update(temperature)
        self.count.update(count)
        if last is not None and abs(temperature - last) > self.jump:
            yield f"{sensor},{count},{last:.2f},{temperature:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--readings", required=True, help="directory of the input files")
    parser.add_argument("--alerts", required=True, help="directory for the output files")
    parser.add_argument("--checkpoints", required=True, help="directory for checkpoints")
    parser.add_argument("--jump", type=float, required=True, help="degrees that make an alert")
    parser.add_argument("--rate", type=float, required=True, help="readings a second")
    parser.add_argument("--interval", type=int, required=True, help="milliseconds between checkpoints")
    args = parser.parse_args()

    configuration = Configuration()
    configuration.set_string("spark.ui.enabled", "false")  # starts faster without
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.enable_checkpointing(args.interval)
    env.get_checkpoint_config().set_checkpoint_storage_dir(args.checkpoints)
    env.get_checkpoint_config().set_max_retained_checkpoints(3)  # so that whoever watches misses none

    lines = CsvReaderFormat(["sensor", "temperature"], [Types.STRING(), Types.DOUBLE()])
    files = FileSource.for_record_stream_format(lines, args.readings).build()
    alerts = FileSink.for_row_format(args.alerts, Encoder.simple_string_encoder()).build()

    readings = env.from_source(Paced(files, args.rate * LINE), None, "readings").uid("readings")
    readings.key_by(lambda reading: reading[0]).process(JumpAlert(args.jump)).uid("jumps").sink_to(alerts).uid("alerts")
    env.execute("sensor-alerts")


if __name__ == "__main__":
    main()
