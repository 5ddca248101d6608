"""Correct a value in the state of a job: read it from a checkpoint, write a savepoint, and go on from that."""

import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from firesteel import state
from firesteel.common import Configuration, Types
from firesteel.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from firesteel.datastream.state import ValueStateDescriptor

MONDAY = [("ann", 30), ("bob", 20), ("ann", 5000), ("cat", 40)]  # the 5000 should have been 50
TUESDAY = [("ann", 10), ("bob", 10)]


class Balance(KeyedProcessFunction):
    def open(self, runtime_context):
        self.balance = runtime_context.get_state(ValueStateDescriptor("balance", Types.LONG()))

    def process_element(self, payment, ctx):
        balance = (self.balance.value() or 0) + payment[1]
        self.balance.update(balance)
        yield payment[0], balance


def run(payments, directory, start_from=""):
    env = StreamExecutionEnvironment.get_execution_environment(
        Configuration.from_dict({"execution.state-recovery.path": start_from} if start_from else {})
    )
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(str(directory))
    source = env.from_collection(payments).uid("payments")
    source.key_by(lambda payment: payment[0]).process(Balance()).uid("balances").print()
    env.execute("accounts")
    return max((directory / "accounts").glob("inc-*/chk-*"), key=lambda path: int(path.name[4:]))


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    with tempfile.TemporaryDirectory() as directory:
        checkpoint = run(MONDAY, Path(directory, "monday"))

        balances = state.read(spark, str(checkpoint), "balances", "balance")
        wrong = balances.where("value > 5000").selectExpr("key", "value - 4950 AS value")

        writer = state.SavepointWriter.from_existing_savepoint(spark, str(checkpoint))
        writer.update_state("balances", "balance", wrong)
        writer.remove_operator("payments")  # it has read Monday's to their end
        savepoint = writer.write(f"{directory}/repaired")
        for change in state.diff(spark, str(checkpoint), savepoint, "balances", "balance").collect():
            print(f"{change.key}: {change.old_value} becomes {change.new_value}")

        run(TUESDAY, Path(directory, "tuesday"), savepoint)


if __name__ == "__main__":
    main()
