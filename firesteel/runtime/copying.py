"""Copies of records, for those who have to have their own: as they would arrive from another slot, by pickling.

What nobody can change is not copied. What cannot be pickled is not, either: it stays shared, since it is no error to have
such records where they are never sent.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any

from firesteel.common.plain import all_plain, is_plain
from firesteel.runtime.flow import Values
from firesteel.state.tables import Begin, GoOn


def own(value: Any) -> Any:
    """A value that nobody else has."""
    if is_plain(value):
        return value
    try:
        return pickle.loads(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    except Exception:  # noqa: BLE001  whatever a user's __reduce__ or __setstate__ raises means the same here
        return value


def own_all(values: Values) -> Values:
    """Values that nobody else has."""
    copies = Copies.of(values)
    return values if copies is None else copies.make()


class Copies:
    """Makes copies of a batch as it is now, whatever becomes of it meanwhile.

    :param apart: what is in several records, as one that a state holds can be, becomes a copy for each of them. Otherwise
        they have it in common as before, which is quicker.
    """

    def __init__(self, values: Values, apart: bool) -> None:
        self._values = values
        self._data: bytes | None = None
        if not apart:
            with contextlib.suppress(Exception):  # see own()
                self._data = pickle.dumps(values, protocol=pickle.HIGHEST_PROTOCOL)

    @classmethod
    def of(cls, values: Values, apart: bool = False) -> Copies | None:
        """None if there is nothing to copy."""
        return None if all_plain(values) else cls(values, apart)

    def make(self) -> Values:
        if self._data is not None:
            try:
                copy: Values = pickle.loads(self._data)
                return copy
            except Exception:  # noqa: BLE001  see own()
                self._data = None
        # one record that cannot be copied does not keep the others of its batch from it: results must not depend on batches
        return list(map(own, self._values))


def unshared(begin: Begin | None, go_on: GoOn) -> tuple[Begin, GoOn]:
    """The same functions for records that are combined more than once, as in sliding windows: a record that becomes the value
    itself is copied, since the next call may change it."""

    def first(record: Any) -> Any:
        made = record if begin is None else begin(record)
        return own(record) if made is record else made

    def further(before: Any, record: Any) -> Any:
        made = go_on(before, record)
        return own(record) if made is record else made

    return first, further
