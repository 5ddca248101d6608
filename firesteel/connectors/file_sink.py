"""Writing files exactly once.

A writer's file is invisible (its name starts with ".") until the checkpoint that recorded it is complete;
committing it is one rename. The life of a file, and where it can stop:

1. `write` opens a temporary file. The writer dies: nothing refers to the file, a later incarnation sweeps it.
2. `prepare_commit` makes the file and its name durable and describes it. The checkpoint fails: the next one
   carries the committable. The job rolls back: `abort` deletes the file, or a later incarnation sweeps it.
3. The checkpoint is complete; `commit` renames. The driver dies before or between: recovery commits again;
   what is found renamed, with the size that was recorded, is done.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from firesteel.common.crashpoints import crash_point
from firesteel.common.durable import sync_directory
from firesteel.common.serialization import Encoder
from firesteel.connectors.base import Committer, CommitterContext, Json, Sink, SinkWriter, WriterContext
from firesteel.connectors.file_paths import local_path
from firesteel.connectors.file_sink_config import OutputFileConfig, RollingPolicy
from firesteel.connectors.part_names import PartName, short_hash
from firesteel.errors import CheckpointError, ConfigurationError

BUFFER = 256 * 1024


class FileSink(Sink):
    """Part files in one directory, each visible only once it is complete and its checkpoint is.

    Every subtask starts a new file after each checkpoint, so the checkpoint interval sets how many files
    there are.
    """

    def __init__(
        self,
        base_path: str,
        encoder: Encoder,
        output_file_config: OutputFileConfig,
        rolling_policy: RollingPolicy,
    ) -> None:
        self.base_path = local_path(base_path)
        self.encoder = encoder
        self.output_file_config = output_file_config
        self.rolling_policy = rolling_policy

    @staticmethod
    def for_row_format(base_path: str, encoder: Encoder) -> FileSink.RowFormatBuilder:
        return FileSink.RowFormatBuilder(base_path, encoder)

    class RowFormatBuilder:
        """Collects the settings of a FileSink."""

        def __init__(self, base_path: str, encoder: Encoder) -> None:
            if not isinstance(encoder, Encoder):
                raise ConfigurationError(
                    f"FileSink needs an Encoder, such as Encoder.simple_string_encoder(), not {encoder!r}"
                )
            self._base_path = base_path
            self._encoder = encoder
            self._config = OutputFileConfig.builder().build()
            self._policy = RollingPolicy.default_rolling_policy()

        def with_output_file_config(self, output_file_config: OutputFileConfig) -> FileSink.RowFormatBuilder:
            self._config = output_file_config
            return self

        def with_rolling_policy(self, rolling_policy: RollingPolicy) -> FileSink.RowFormatBuilder:
            self._policy = rolling_policy
            return self

        def build(self) -> FileSink:
            return FileSink(self._base_path, self._encoder, self._config, self._policy)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        os.makedirs(self.base_path, exist_ok=True)
        return FileWriter(self, context)

    def create_committer(self, context: CommitterContext) -> Committer:
        os.makedirs(self.base_path, exist_ok=True)
        return FileCommitter(self.base_path, context)


class FileWriter(SinkWriter):
    """Writes one temporary file at a time; those that are full wait, closed, for the barrier."""

    def __init__(self, sink: FileSink, context: WriterContext) -> None:
        self._directory = sink.base_path
        self._config = sink.output_file_config
        self._part_size = sink.rolling_policy.part_size
        self._context = context
        self._encode: Callable[[Any], bytes] = sink.encoder.encode
        self._sequence = 0
        self._file: BinaryIO | None = None
        self._final = ""
        self._size = 0
        self._complete: list[Json] = []

    def write(self, values: Sequence[Any]) -> None:
        if not values:
            return
        data = b"".join(map(self._encode, values))
        file = self._file or self._open()
        file.write(data)
        self._size += len(data)
        if self._part_size is not None and self._size >= self._part_size:
            self._finish()

    def _open(self) -> BinaryIO:
        while True:
            context = self._context
            name = PartName.of(context.job_id, context.uid, context.incarnation, self._sequence, context.subtask)
            self._sequence += 1
            self._final = os.path.join(self._directory, name.final(self._config.prefix, self._config.suffix))
            temporary = os.path.join(self._directory, name.temporary())
            # A name of this incarnation is only taken if its writer was made twice; then count past the first
            # one's files, pre-committed or committed: they are not ours to overwrite.
            if os.path.exists(self._final) or os.path.exists(temporary):
                continue
            self._file = file = open(temporary, "xb", buffering=BUFFER)  # noqa: SIM115  open until the barrier
            self._size = 0
            return file

    def _finish(self) -> None:
        file = self._file
        if file is None:
            return
        file.close()
        self._file = None
        self._complete.append({"temporary": file.name, "final": self._final, "size": self._size})

    def prepare_commit(self) -> list[Json]:
        self._finish()
        committables, self._complete = self._complete, []
        return committables

    def persist(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            with open(committable["temporary"], "rb") as file:
                os.fsync(file.fileno())
        if committables:
            sync_directory(self._directory)  # a file is not durable before its name is

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            _unlink(self._file.name)
            self._file = None
        for finished in self._complete:
            _unlink(finished["temporary"])


class FileCommitter(Committer):
    """Renames, deletes and sweeps."""

    def __init__(self, directory: str, context: CommitterContext) -> None:
        self._directory = directory
        self._context = context

    def commit(self, committables: Sequence[Json]) -> None:
        # One that cannot be committed must not keep the others invisible: try all, then complain.
        problems = [problem for committable in committables if (problem := self._commit(committable))]
        for directory in {os.path.dirname(committable["final"]) for committable in committables}:
            if os.path.isdir(directory):
                sync_directory(directory)
        if problems:
            raise CheckpointError(f"file sink {self._context.uid!r} cannot commit: " + "; ".join(problems))

    def _commit(self, committable: Json) -> str | None:
        temporary, final, size = committable["temporary"], committable["final"], committable["size"]
        waiting, done = _size(temporary), _size(final)
        if waiting is None and done == size:
            return None
        if waiting is None and done is None:
            return f"neither {temporary!r} nor {final!r} is there; did another program move or delete it?"
        if waiting is None:
            return f"{final!r} should have {size} bytes but has {done}; it was changed after it was committed"
        if done is not None:
            return f"{temporary!r} cannot be moved to {final!r}, which is there already; move that file away"
        if waiting != size:
            return f"{temporary!r} should have {size} bytes but has {waiting}"
        try:
            os.rename(temporary, final)
            crash_point("after-one-rename")
        except OSError as error:
            return f"{temporary!r} cannot be renamed to {final!r}: {error}"
        return None

    def abort(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            _unlink(committable["temporary"])

    def sweep(self, keep: Sequence[Json]) -> None:
        # by name alone: names are unique, but a directory can be spelled in many ways
        kept = {os.path.basename(committable["temporary"]) for committable in keep}
        job, sink = short_hash(self._context.job_id), short_hash(self._context.uid)
        for name in os.listdir(self._directory):
            part = PartName.parse(name)
            if part is None or (part.job, part.sink) != (job, sink):
                continue
            if part.incarnation < self._context.incarnation and name not in kept:
                _unlink(os.path.join(self._directory, name))


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
