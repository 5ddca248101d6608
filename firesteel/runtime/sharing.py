"""Who of those that read an operator's output may have its very objects, and who gets copies.

A function may change a record that it is given. So a record that others have, too, has to be copied for it. Decided once,
when a slot is built:

- Readers that are called get copies of what somebody else holds on to: an exchange, in which records wait to be pickled,
  or the state of the operator that gives them out.
- If nobody does, all but the one that is called last, after which nobody looks at the objects any more.
- A single reader costs nothing, and records of plain values a look at each batch (`common/plain.py`).

`pipeline.object-reuse` says that no function changes its input, and does without copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from firesteel.graph import nodes
from firesteel.runtime.copying import Copies
from firesteel.runtime.flow import Receiver, Times, Values
from firesteel.runtime.windows.aligned import is_aligned


def receivers(readers: Sequence[tuple[Receiver, bool]], kept: bool) -> list[Receiver]:
    """What to push an output to, so that its readers share nothing that could be changed.

    :param readers: in their order; with whether they are called with the objects, or are exchanges.
    :param kept: the operator holds on to what it gives out.
    """
    direct = [index for index, (_, is_direct) in enumerate(readers) if is_direct]
    copied = direct if kept or len(direct) < len(readers) else direct[:-1]
    every = [reader for reader, _ in readers]
    return [Fan(every, frozenset(copied), kept)] if copied else every


def keeps(kind: nodes.Operator) -> bool:
    """Whether an operator gives out what its state still holds. What users' functions keep is theirs to copy.

    Rolling aggregates, and windows that may fire again, copy what they give out at once: it can change with the next record.
    """
    if isinstance(kind, nodes.Window):
        if kind.combine is None or kind.evictor is not None:
            return True
        sliding = is_aligned(kind) and kind.assigner.slide < kind.assigner.size
        return sliding and not kind.allowed_lateness  # parts of records are in several windows
    return isinstance(kind, nodes.IntervalJoin)


class Fan:
    """Several readers, or one beside the operator's state.

    :param copied: the positions of those that get copies.
    :param kept: the state may hold parts of several records, or one record several times.
    """

    def __init__(self, readers: Sequence[Receiver], copied: frozenset[int], kept: bool) -> None:
        self._readers, self._kept = readers, kept
        self._ways = [(reader.push, index in copied) for index, reader in enumerate(readers)]

    def push(self, values: Values, times: Times) -> None:
        copies = Copies.of(values, apart=self._kept)
        for push, copied in self._ways:
            push(copies.make() if copied and copies is not None else values, times)

    def advance(self, watermark: int) -> None:
        for reader in self._readers:
            reader.advance(watermark)

    def idle(self, idle: bool) -> None:
        for reader in self._readers:
            reader.idle(idle)
