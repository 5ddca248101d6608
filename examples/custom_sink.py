"""A sink of your own, exactly once: rows of an SQLite table, inserted when the checkpoint that covers them is complete."""

import json
import os
import sqlite3
import sys
import tempfile

from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.base import Committer, Sink, SinkWriter

TABLES = """
    CREATE TABLE IF NOT EXISTS counts (word TEXT, n INTEGER);
    CREATE TABLE IF NOT EXISTS committed (staged TEXT PRIMARY KEY);
"""


class TableSink(Sink):
    """Inserts (word, n) into the table `counts`.

    The description of the sink. It is pickled to the slots, so it holds paths and no connection.
    """

    def __init__(self, database, staging):
        self.database = database
        self.staging = staging  # a directory that the driver and all slots can reach

    def create_writer(self, context):
        return StagingWriter(self.staging, context)

    def create_committer(self, context):
        return TableCommitter(self.database, self.staging, context)


class StagingWriter(SinkWriter):
    """A slot's half: collects rows, and at a barrier puts them into a file that nobody reads before the commit."""

    def __init__(self, staging, context):
        self.name = f"{staging}/{context.job_id}-{context.uid}-{context.incarnation}-{context.subtask}"
        self.rows = []
        self.files = 0

    def write(self, values):
        self.rows.extend(values)

    def prepare_commit(self):
        if not self.rows:
            return []
        self.files += 1
        staged = f"{self.name}-{self.files}.json"
        with open(staged, "w") as file:
            json.dump(self.rows, file)
        self.rows = []
        return [staged]  # a committable: all that the committer will know

    def persist(self, committables):
        """Called by another thread, while the next epoch runs. A file is durable when its name is, too."""
        for path in {*committables, *map(os.path.dirname, committables)}:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


class TableCommitter(Committer):
    """The driver's half. After a crash it is called again with what it may have committed already."""

    def __init__(self, database, staging, context):
        self.database, self.staging, self.context = database, staging, context
        with sqlite3.connect(database) as connection:
            connection.executescript(TABLES)
        connection.close()

    def commit(self, committables):
        connection = sqlite3.connect(self.database)
        for staged in committables:
            with connection:  # one transaction: the rows, and the note that they are there
                noted = connection.execute("INSERT OR IGNORE INTO committed VALUES (?)", (staged,))
                if noted.rowcount == 1:
                    with open(staged) as file:
                        connection.executemany("INSERT INTO counts VALUES (?, ?)", json.load(file))
        connection.close()
        self.abort(committables)

    def abort(self, committables):
        for staged in committables:
            if os.path.exists(staged):
                os.remove(staged)

    def sweep(self, keep):
        """Throw away what earlier incarnations staged and no checkpoint knows of."""
        mine = f"{self.context.job_id}-{self.context.uid}"
        for name in os.listdir(self.staging):
            owner, incarnation, _, _ = name.rsplit("-", 3)
            staged = f"{self.staging}/{name}"
            if owner == mine and int(incarnation) < self.context.incarnation and staged not in keep:
                os.remove(staged)


def main(directory):
    database, staging = f"{directory}/counts.db", f"{directory}/staging"
    os.makedirs(staging, exist_ok=True)

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(1000)
    words = env.from_collection(["to be or not to be"]).flat_map(lambda line: line.split()).map(lambda word: (word, 1))
    counts = words.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    counts.sink_to(TableSink(database, staging)).uid("counts")
    env.execute("custom sink")

    connection = sqlite3.connect(database)
    for word, count in connection.execute("SELECT word, max(n) FROM counts GROUP BY word ORDER BY word"):
        print(word, count)
    connection.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)
