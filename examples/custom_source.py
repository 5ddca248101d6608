"""A source of your own: the rows of an SQLite table that only ever grows, each read once."""

import itertools
import sqlite3
import sys
import tempfile

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import CHUNK, Assignment, Source, SourceReader, SplitEnumerator


class TableSource(Source):
    """Reads (id, sensor, temperature) in the order of the ids, up to the last row there is when the job starts.

    The description of the source. It is pickled to the slots, so it holds a path and no connection.
    """

    def __init__(self, path):
        self.path = path

    def create_enumerator(self, context):
        return TableEnumerator(self.path, context.parallelism)

    def create_reader(self, context):
        return TableReader(self.path)


class TableEnumerator(SplitEnumerator):
    """The driver's half: plans which ids every subtask reads in the next epoch. The unit it counts in is an id."""

    def __init__(self, path, parallelism):
        self.parallelism = parallelism
        self.position = 0  # the last id that was planned
        with sqlite3.connect(path) as database:
            (self.last,) = database.execute("SELECT coalesce(max(id), 0) FROM readings").fetchone()
        database.close()

    def plan(self, budget):
        first, stop = self.position + 1, min(self.position + budget, self.last) + 1
        cuts = [first + (stop - first) * i // self.parallelism for i in range(self.parallelism + 1)]
        self.position = stop - 1
        ranges = [[[a, b]] if a < b else [] for a, b in itertools.pairwise(cuts)]
        return Assignment(ranges, units=stop - first)

    def finished(self):
        return self.position == self.last  # a source that goes on for ever returns False

    def snapshot(self):
        return {"position": self.position}  # goes into every checkpoint

    def restore(self, state):
        self.position = state["position"]


class TableReader(SourceReader):
    """A slot's half: reads the ids it is told to, and the same rows again when it is told again."""

    def __init__(self, path):
        self.database = sqlite3.connect(path)

    def read(self, planned):
        first, stop = planned
        rows = self.database.execute(
            "SELECT id, sensor, temperature FROM readings WHERE id >= ? AND id < ?", (first, stop)
        )
        while chunk := rows.fetchmany(CHUNK):
            yield chunk

    def close(self):
        self.database.close()


def main(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE IF NOT EXISTS readings (id INTEGER PRIMARY KEY, sensor TEXT, temperature REAL)")
        rows = [("oven", 180.5), ("cellar", 12.0), ("oven", 181.0), ("cellar", 12.5)]
        database.executemany("INSERT INTO readings (sensor, temperature) VALUES (?, ?)", rows)
    database.close()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    readings = env.from_source(TableSource(path), None, "readings")
    readings.map(lambda row: f"{row[1]}: {row[2]}").print()
    env.execute("custom source")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{directory}/readings.db")
