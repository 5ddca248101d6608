"""The driver's half of the file sink: renames, deletes and sweeps."""

from __future__ import annotations

import os
from collections.abc import Sequence

from firesteel.common.crashpoints import crash_point
from firesteel.common.durable import remove_file
from firesteel.connectors.base import Committer, CommitterContext, Json
from firesteel.connectors.file_sink_writer import publish, sync_path
from firesteel.connectors.part_names import PartName, short_hash
from firesteel.errors import CheckpointError


class FileCommitter(Committer):
    """Committing a file is renaming it."""

    def __init__(self, directory: str, context: CommitterContext) -> None:
        self._directory = directory
        self._context = context

    def commit(self, committables: Sequence[Json]) -> None:
        # One that cannot be committed must not keep the others invisible: try all, then complain.
        problems = [problem for committable in committables if (problem := self._commit(committable))]
        for directory in {os.path.dirname(committable["final"]) for committable in committables}:
            if os.path.isdir(directory):
                sync_path(directory, self._directory)
        if problems:
            raise CheckpointError(f"file sink {self._context.uid!r} cannot commit: " + "; ".join(problems))

    def _commit(self, committable: Json) -> str | None:
        temporary, final, size = committable["temporary"], committable["final"], committable["size"]
        try:
            waiting, done = _size(temporary), _size(final)
        except OSError as error:
            return f"{temporary!r} cannot be renamed to {final!r}: {error}"
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
            publish(temporary, final)
            crash_point("after-one-rename")
        except OSError as error:
            return f"{temporary!r} cannot be renamed to {final!r}: {error}"
        return None

    def abort(self, committables: Sequence[Json]) -> None:
        for committable in committables:
            remove_file(committable["temporary"])

    def sweep(self, keep: Sequence[Json]) -> None:
        # by name alone: names are unique, but a directory can be spelled in many ways
        kept = {os.path.basename(committable["temporary"]) for committable in keep}
        job, sink = short_hash(self._context.job_id), short_hash(self._context.uid)
        for name in os.listdir(self._directory):
            part = PartName.parse(name)
            if part is None or (part.job, part.sink) != (job, sink):
                continue
            if part.incarnation < self._context.incarnation and name not in kept:
                remove_file(os.path.join(self._directory, name))


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
