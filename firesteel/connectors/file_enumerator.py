"""The driver's half of the file source: which files there are, and how far each one has been planned."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from firesteel.connectors.base import Assignment, EnumeratorContext, Json, SplitEnumerator
from firesteel.connectors.file_formats import FileFormat
from firesteel.connectors.file_paths import discover
from firesteel.connectors.splits import Split, SplitPlanner, by_subtask
from firesteel.errors import RestoreError


@dataclass
class PlannedFile:
    """A file and what is left of it. Until it is its turn it is not `cut`, and not opened either."""

    path: str
    size: int
    cut: bool = False
    length: int = 0
    splits: list[Split] = field(default_factory=list)

    def cut_into(self, ranges: Sequence[tuple[int, int]], length: int, whole: bool) -> None:
        self.cut = True
        self.length = length
        self.splits = [Split(self.path, start, stop, whole) for start, stop in ranges]

    @property
    def left(self) -> int:
        return sum(split.left for split in self.splits)

    @property
    def finished(self) -> bool:
        return self.cut and not self.left


class FileEnumerator(SplitEnumerator):
    """Plans files in path order; units are the format's.

    With a `discovery_interval` (seconds) it never finishes, and looks for new files at most that often. A
    file counts as known by its path: it is never read twice, and must not change.
    """

    def __init__(
        self,
        paths: Sequence[str],
        form: FileFormat,
        context: EnumeratorContext,
        split_size: int,
        discovery_interval: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths = paths
        self._form = form
        self._context = context
        self._split_size = split_size
        self._interval = discovery_interval
        self._clock = clock
        self._planner = SplitPlanner(context.parallelism, self._next_split)
        self._files: dict[str, PlannedFile] = {}
        self._waiting: deque[PlannedFile] = deque()
        self._splits: deque[Split] = deque()
        if form.unit == "bytes":
            self.first_units = 1 << 20  # some ten thousand lines
        self._discover()

    def _discover(self) -> None:
        self._looked = self._clock()
        for path, size in discover(self._paths, may_be_missing=self._interval is not None).items():
            if path not in self._files:
                self._form.check(path)
                self._files[path] = file = PlannedFile(path, size)
                self._waiting.append(file)

    def _next_split(self) -> Split | None:
        while not self._splits and self._waiting:
            file = self._waiting.popleft()
            if not file.cut:
                ranges = self._form.splits(file.path, file.size, self._split_size) if file.size else []
                file.cut_into(ranges, ranges[-1][1] if ranges else 0, not self._form.splittable)
            resumed = [id(split) for split in self._planner.current()]
            self._splits.extend(split for split in file.splits if split.left and id(split) not in resumed)
        return self._splits.popleft() if self._splits else None

    def plan(self, budget: int) -> Assignment:
        if self._interval is not None and self._clock() - self._looked >= self._interval:
            self._discover()
        planned = self._planner.plan(budget)
        ranges = [
            [
                {"path": r.name, "size": self._files[r.name].size, "start": r.start, "stop": r.stop, "end": r.end}
                for r in one
            ]
            for one in by_subtask(self._context.parallelism, planned)
        ]
        units = sum(r.stop - r.start for r in planned)
        return Assignment(ranges, units, not self._left(), self._planner.open(self._pending()))

    def finished(self) -> bool:
        return self._interval is None and not self._left()

    def _left(self) -> bool:
        """Whether there is anything to read in the files that are known."""
        return any(self._planner.current()) or self._pending()

    def _pending(self) -> bool:
        """Whether there is anything that no subtask has yet."""
        # empty files, which nobody has to read, may be all that waits
        return bool(self._splits) or any(file.size if not file.cut else file.left for file in self._waiting)

    def snapshot(self) -> Json:
        files = self._files.values()
        return {
            "unit": self._form.unit,
            "finished": {file.path: file.size for file in files if file.finished},
            "waiting": {file.path: file.size for file in files if not file.cut},
            "reading": {
                file.path: {
                    "size": file.size,
                    "length": file.length,
                    "left": [[split.position, split.stop] for split in file.splits if split.left],
                }
                for file in files
                if file.cut and file.left
            },
            "subtasks": [split.id if split is not None else None for split in self._planner.subtasks()],
        }

    def restore(self, state: Json) -> None:
        """Go on where the checkpoint was. Files that came since are read; finished ones may be gone."""
        if state["unit"] != self._form.unit:
            raise self._refuse(f"the checkpoint's positions count {state['unit']}, this format's {self._form.unit}")
        for path in state["waiting"]:
            self._known(path)
        for path, at in state["reading"].items():
            file = self._known(path)
            self._same_size(file, at["size"])
            ranges = [(start, stop) for start, stop in at["left"]]
            if not self._form.splittable and ranges != [(0, at["length"])]:
                raise self._refuse(f"{path!r} was left in the middle, and this format reads a file only as a whole")
            file.cut_into(ranges, at["length"], not self._form.splittable)
        for path, size in state["finished"].items():
            if self._form.kept and path not in self._files:  # all of these would be read again
                raise self._refuse(f"{path!r}, which it has read, is not in the directory of this job")
            file = self._files.setdefault(path, PlannedFile(path, size))
            self._same_size(file, size)
            file.cut_into([], 0, False)
        self._waiting = deque(file for file in self._waiting if not file.finished)
        self._resume(state.get("subtasks", ()))

    def _resume(self, subtasks: Sequence[str | None]) -> None:
        """Give splits back to the subtasks that had them, if these are as many as before."""
        if len(subtasks) == self._context.parallelism:
            splits = {split.id: split for file in self._waiting if file.cut for split in file.splits}
            for subtask, name in enumerate(subtasks):
                if name is not None:
                    self._planner.resume(subtask, splits[name])

    def _known(self, path: str) -> PlannedFile:
        if path not in self._files:
            raise self._refuse(f"{path!r} has not been read to its end, and is gone or not among the source's paths")
        return self._files[path]

    def _same_size(self, file: PlannedFile, size: int) -> None:
        if file.size != size:
            raise self._refuse(f"{file.path!r} had {size} bytes and has {file.size} now, so positions in it are void")

    def _refuse(self, reason: str) -> RestoreError:
        return RestoreError(
            f"source {self._context.uid!r} cannot go on from this checkpoint: {reason}. Put the files back "
            f"as they were, or give the source another uid to read everything from the start."
        )

    def progress(self) -> float | None:
        if self._interval is not None:
            return None
        total = sum(file.size for file in self._files.values())
        left = sum(
            file.size * (file.left / file.length if file.length else 0.0) if file.cut else file.size
            for file in self._files.values()
        )
        return 1.0 - left / total if total else 1.0
