"""Work on state in Spark's Python workers."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle  # type: ignore[import-untyped,unused-ignore]
import pyarrow
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark

from firesteel import errors
from firesteel.engine.dataframes import job_group
from firesteel.engine.spark_private import is_classic, map_in_arrow
from firesteel.graph.shipping import install_main_classes, pack_main_classes

Batches = Iterator[pyarrow.RecordBatch]

_GROUP = "firesteel-state"
_ANSWERS = spark.StructType([spark.StructField("answer", spark.BinaryType())])
_ANSWER = pyarrow.schema([("answer", pyarrow.binary())])


@dataclass(frozen=True)
class Shipped:
    """A function for `mapInArrow`, with what unpickling state needs of the driver: its import path and main classes.

    It is pickled here and not by Spark, whose pickle would make other classes of the main classes than those it is installed
    with.
    """

    path: tuple[str, ...]
    main_classes: bytes
    function: bytes

    @staticmethod
    def of(function: Callable[[Batches], Batches]) -> Shipped:
        path = tuple(os.path.abspath(entry) for entry in sys.path)
        return Shipped(path, pack_main_classes(), cloudpickle.dumps(function, protocol=pickle.HIGHEST_PROTOCOL))

    def __call__(self, batches: Batches) -> Batches:
        sys.path.extend(entry for entry in self.path if entry not in sys.path)
        install_main_classes(self.main_classes)
        function: Callable[[Batches], Batches] = pickle.loads(self.function)
        yield from function(batches)


def check_session(session: Any) -> None:
    """
    :raises ConfigurationError: it is no session whose workers can be used.
    """
    if not isinstance(session, SparkSession) or not is_classic(session.range(0)):
        raise errors.ConfigurationError(
            f"a classic SparkSession is needed, SparkSession.builder.master(...).getOrCreate(), and not {session!r:.200}: over "
            f"Spark Connect the state files may be on another machine"
        )


def run_parts(session: SparkSession, work: Callable[[Any], Any], parts: Sequence[Any], description: str) -> list[Any]:
    """What the work gives for each part, each in a task of its own. Answers come to the driver, so they are small.

    :raises FiresteelError: what the work raised, without Spark's wrapping.
    """
    if not parts:
        return []
    frame = session.range(0, len(parts), 1, len(parts))
    return collect_answers(frame, _Parts(work, list(parts)), description)


def collect_answers(frame: DataFrame, answering: Callable[[Batches], Batches], description: str) -> list[Any]:
    """
    :param answering: gives batches made by `answers`.
    """
    with job_group(frame.sparkSession.sparkContext, _GROUP, description):
        rows = map_in_arrow(frame, Shipped.of(answering), _ANSWERS).collect()
    found = [pickle.loads(row.answer) for row in rows]
    for failed, answer in found:
        if failed:
            raise rebuilt(answer)
    return [answer for _, answer in found]


def answers(results: Iterator[Any]) -> Batches:
    """Errors of ours, which explain themselves, are an answer too: Spark would wrap them, and try again what cannot work."""
    given: list[bytes] = []
    try:
        given.extend(pickle.dumps((False, result)) for result in results)
    except errors.FiresteelError as error:
        given.append(pickle.dumps((True, failure(error))))
    yield pyarrow.RecordBatch.from_arrays([pyarrow.array(given, pyarrow.binary())], schema=_ANSWER)


def failure(error: errors.FiresteelError) -> bytes:
    """For `rebuilt` in another process."""
    name = next(cls.__name__ for cls in type(error).__mro__ if hasattr(errors, cls.__name__))
    return pickle.dumps((name, str(error)))


def rebuilt(described: bytes) -> errors.FiresteelError:
    name, message = pickle.loads(described)
    error: errors.FiresteelError = getattr(errors, name)(message)
    return error


@dataclass(frozen=True)
class _Parts:
    work: Callable[[Any], Any]
    parts: list[Any]

    def __call__(self, batches: Batches) -> Batches:
        return answers(self.work(self.parts[index]) for batch in batches for index in batch.column(0).to_pylist())
