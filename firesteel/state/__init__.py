"""State outside of jobs: what is in a checkpoint or savepoint, as Spark DataFrames, and savepoints made of DataFrames.

| | |
| --- | --- |
| `list_states(path)` | which states there are; needs no Spark |
| `read(spark, path, uid, name)` | one state of one operator as a DataFrame |
| `diff(spark, old, new, uid, name)` | what changed between two of them |
| `SavepointWriter` | a savepoint from DataFrames, new or made of an existing one |

Everything else in this package is firesteel's own. Imports are made when they are needed: slots load this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from firesteel.coordinator.inspecting import StateInfo
    from firesteel.engine.savepoint_writer import SavepointWriter

__all__ = ["SavepointWriter", "StateInfo", "diff", "list_states", "read"]


def list_states(path: str) -> list[StateInfo]:
    """The states in a checkpoint or savepoint, told from the footers of its files: nothing is unpickled.

    :param path: the directory of a checkpoint or savepoint, or its `_metadata` file, as a path or URI.
    :raises RestoreError: it is none, or one of its files is missing, damaged or of a newer format.
    """
    from firesteel.coordinator import inspecting

    return inspecting.list_states(path)


def read(
    spark: SparkSession,
    path: str,
    uid: str,
    name: str,
    *,
    key_type: Any = None,
    map_key_type: Any = None,
    value_type: Any = None,
    pickled: bool = False,
) -> DataFrame:
    """One state of one operator as a DataFrame.

    Its columns, as far as the state has them: `key`; `window`, with `start` and `end`, or `id`; `position` in a list, `map_key`
    of a map or of broadcast state, `timestamp` of a timer; `value`; `last_access`, where there is time-to-live; `key_group`.
    State that belongs to no key has `subtask` in the place of `key`. Times are milliseconds since 1970. An aggregating state's
    value is its accumulator.

    Types that are not given are found by reading the whole state once, and it is an error if there is none: so a query
    never fails halfway. Giving all of them saves that pass.

    :param path: the directory of a checkpoint or savepoint, or its `_metadata` file. The files are read when the DataFrame is
        used: a checkpoint that its job drops meanwhile is gone then.
    :param key_type: in DDL ("BIGINT", "name STRING, age INT"), a pyspark DataType, one of `Types`, or "repr": the objects as
        text. `map_key_type` and `value_type` likewise.
    :param pickled: with columns `key_pickle`, `map_key_pickle` and `value_pickle` besides: the objects themselves.
    :raises StateError: there is no such state; or its values are not of one type.
    :raises RestoreError: the checkpoint cannot be read.
    """
    from firesteel.engine import state_frames

    return state_frames.read(spark, path, uid, name, key_type, map_key_type, value_type, pickled)


def diff(
    spark: SparkSession,
    old: str,
    new: str,
    uid: str,
    name: str,
    *,
    key_type: Any = None,
    map_key_type: Any = None,
    value_type: Any = None,
) -> DataFrame:
    """What of a state differs between two checkpoints or savepoints.

    The columns that say where an entry is are those of `read`; then `change`, which is added, removed or changed, `old_value`
    and `new_value`, and with time-to-live `old_last_access` and `new_last_access`. An entry that was only used again has
    not changed. Key groups whose files are the same in both are not read.

    :raises StateError: neither has the state, or they have it in kinds that cannot be compared.
    """
    from firesteel.engine import state_diff

    return state_diff.diff(spark, old, new, uid, name, key_type, map_key_type, value_type)


def __getattr__(name: str) -> Any:
    if name == "SavepointWriter":
        from firesteel.engine.savepoint_writer import SavepointWriter

        return SavepointWriter
    if name == "StateInfo":
        from firesteel.coordinator.inspecting import StateInfo

        return StateInfo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
