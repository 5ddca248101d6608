"""Running sum, minimum and maximum of a field, by position or by name: one update for each record.

sum, min and max give the first record of the key with that one field replaced; min_by and max_by give the whole record
that has the smallest or largest value.
"""

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

READINGS = [("oven", 1, 20), ("oven", 2, 35), ("oven", 3, 15), ("cellar", 4, 12), ("oven", 5, 35)]
READING = Types.ROW_NAMED(["sensor", "time", "celsius"], [Types.STRING(), Types.INT(), Types.INT()])


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    readings = env.from_collection(READINGS, READING).key_by(lambda reading: reading.sensor)
    readings.sum(2).print("sum")
    readings.min("celsius").print("min")
    readings.max("celsius").print("max")
    readings.min_by("celsius").print("min_by")
    readings.max_by("celsius").print("max_by")
    env.execute("rolling aggregates")


if __name__ == "__main__":
    main()
