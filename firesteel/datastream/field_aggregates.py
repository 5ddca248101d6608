"""Aggregates of one field, which is given by position or name: of all records of a key so far, or of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from firesteel.datastream import rolling
from firesteel.datastream.fields import Field
from firesteel.datastream.functions import ReduceFunction

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream


class FieldAggregates(ABC):
    """For streams whose records belong together by key or window."""

    def sum(self, position_to_sum: Field = 0) -> DataStream:
        """The first record with the sum of the field."""
        return self._roll("sum", rolling.rolling_sum, position_to_sum)

    def min(self, position_to_min: Field = 0) -> DataStream:
        """The first record with the smallest value of the field."""
        return self._roll("min", rolling.rolling_min, position_to_min)

    def max(self, position_to_max: Field = 0) -> DataStream:
        """The first record with the largest value of the field."""
        return self._roll("max", rolling.rolling_max, position_to_max)

    def min_by(self, position_to_min_by: Field = 0) -> DataStream:
        """The record with the smallest value of the field; the first of equals."""
        return self._roll("min_by", rolling.rolling_min_by, position_to_min_by)

    def max_by(self, position_to_max_by: Field = 0) -> DataStream:
        """The record with the largest value of the field; the first of equals."""
        return self._roll("max_by", rolling.rolling_max_by, position_to_max_by)

    @abstractmethod
    def _roll(self, method: str, aggregate: Callable[[Field], ReduceFunction], field: Field) -> DataStream: ...
