"""How many tasks Spark runs at a time, and which of them are spoken for.

Tasks that wait for one another must all have a core of Spark's: if some had none, those that have one would wait for ever.
"""

from __future__ import annotations

import weakref

from pyspark import SparkContext

from firesteel.engine import spark_private

_reserved: weakref.WeakKeyDictionary[SparkContext, int] = weakref.WeakKeyDictionary()


def needed(parallelism: int) -> int:
    """How many an embedded Spark has: for two epochs' jobs side by side, and as many for others. What they wait for are slots,
    so they take no core of the machine."""
    return 3 * max(parallelism, 1)


def reserve(sc: SparkContext, tasks: int) -> bool:
    """Take cores for so many tasks, if there are that many and one is left for others."""
    taken = _reserved.get(sc, 0) + tasks
    if taken >= spark_private.local_cores(sc):
        return False
    _reserved[sc] = taken
    return True


def give_back(sc: SparkContext, tasks: int) -> None:
    if tasks:
        _reserved[sc] -= tasks
