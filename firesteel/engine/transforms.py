"""`transform_dataframe`: an epoch is cut into several Spark jobs, with the user's queries between them.

A program's `transform_dataframe` is two operators: `ToFrame`, which ends a level, and `FromFrame`, which starts the next.
The levels up to a cut are one Spark job. Its slots leave the records of every `ToFrame` in files; everything else that
passes the cut comes back to the driver, as bytes, and goes into the next Spark job from there. Between the two the driver
calls the functions and writes what their queries give, and each subtask of the `FromFrame` reads its share of that.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from firesteel.connectors.base import Json
from firesteel.connectors.dataframe_transform import even_ranges
from firesteel.connectors.user_code import user_error
from firesteel.engine.dataframes import JobFrames
from firesteel.engine.pump import ADDRESS
from firesteel.graph.nodes import FromFrame, ToFrame
from firesteel.graph.plan import JobPlan, PlannedOperator
from firesteel.runtime.wire import DRIVER, FRAME, ROW, target_of


class FrameTransforms:
    """The queries of one job."""

    def __init__(self, plan: JobPlan, frames: JobFrames) -> None:
        self._plan, self._frames = plan, frames
        cuts = sorted({operator.level for operator in plan.operators if isinstance(operator.operator, FromFrame)})
        self.segments = [range(*ends) for ends in zip([0, *cuts], [*cuts, plan.levels], strict=True)]
        """The levels of each Spark job."""

    @contextlib.contextmanager
    def directory(self, scratch: str) -> Iterator[str]:
        """A place for an epoch's files."""
        directory = tempfile.mkdtemp(prefix="frames-", dir=scratch)
        try:
            for operator in self._plan.operators:
                if isinstance(operator.operator, ToFrame):
                    os.mkdir(os.path.join(directory, str(operator.id)))
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def apply(
        self, cut: int, rows: list[bytes], directory: str, description: str
    ) -> tuple[list[list[bytes]], list[dict[str, list[Json]]]]:
        """Run the queries before level `cut`.

        :param rows: all that the level before has sent.
        :return: for each slot the rows that it gets besides, in order, and the ranges of the results that it reads.
        """
        handed: list[list[bytes]] = [[] for _ in range(self._plan.slots)]
        files: dict[int, list[str]] = {}
        for row in rows:
            level, edge, _ = ROW.unpack_from(row, ADDRESS.size)
            if level == DRIVER and edge == FRAME:
                written = json.loads(row[ADDRESS.size + ROW.size :])
                files.setdefault(written["operator"], []).append(written["file"])
            else:
                handed[target_of(ADDRESS.unpack_from(row)[0], self._plan.slots)].append(row)
        for mine in handed:
            mine.sort(key=lambda row: ADDRESS.unpack_from(row)[0])
        ranges: list[dict[str, list[Json]]] = [{} for _ in range(self._plan.slots)]
        for operator in self._plan.level(cut):
            source = operator.inputs[0].upstream if isinstance(operator.operator, FromFrame) else None
            if source in files:
                result = os.path.join(directory, f"{operator.id}-result")
                paths = [os.path.join(directory, str(source), name) for name in sorted(files[source])]
                self._query(self._plan.operator(source), paths, result, description)
                for slot, share in enumerate(even_ranges(result, operator.parallelism)):
                    ranges[slot][operator.uid] = share
        return handed, ranges

    def _query(self, operator: PlannedOperator, files: list[str], result: str, description: str) -> None:
        assert isinstance(operator.operator, ToFrame)
        transform: Any = operator.operator.transform
        frame = self._frames.read(files, transform.schema)
        try:
            made = self._frames.run(description, lambda: transform.function(frame))
            made = self._frames.checked(made, "the function given to transform_dataframe()")
            self._frames.write(made, result, f"{description}, {operator.name}")
        except Exception as error:
            raise user_error(error, f"in {operator}, on the driver") from error
