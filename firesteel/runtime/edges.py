"""The sending end of each edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firesteel.graph.keys import KeyGroups
from firesteel.graph.nodes import Partitioning, Window
from firesteel.graph.plan import PlannedEdge, PlannedOperator
from firesteel.runtime.exchange import (
    CustomExchange,
    Exchange,
    GlobalExchange,
    KeyExchange,
    RoundRobinExchange,
    Send,
    ShuffleExchange,
)
from firesteel.runtime.own import OwnBatches
from firesteel.runtime.windows.precombining import CombiningExchange
from firesteel.runtime.windows.waiting import Waiting


def create_exchange(
    edge: PlannedEdge,
    upstream: PlannedOperator,
    downstream: PlannedOperator,
    slot: int,
    send: Send,
    own: OwnBatches,
    selector: Callable[[Any], Any] | None,
    partition: Callable[[Any, int], int] | None,
    groups: KeyGroups,
    restored: bool = False,
    waiting: Waiting | None = None,
) -> Exchange:
    """The sending end for an edge's partitioning, and for what is done with records behind it."""
    place = (edge, upstream, downstream, slot, send, own)
    match edge.partitioning:
        case Partitioning.KEY:
            assert selector is not None
            kind = downstream.operator
            if isinstance(kind, Window) and kind.pre_combine:
                routing = {"selector": selector, "groups": groups}
                return CombiningExchange(*place, kind=kind, restored=restored, waiting=waiting, **routing)
            return KeyExchange(*place, selector=selector, groups=groups)
        case Partitioning.CUSTOM:
            assert selector is not None and partition is not None
            return CustomExchange(*place, selector=selector, partition=partition)
        case Partitioning.REBALANCE | Partitioning.RESCALE:
            return RoundRobinExchange(*place)
        case Partitioning.SHUFFLE:
            return ShuffleExchange(*place)
        case Partitioning.GLOBAL:
            return GlobalExchange(*place)
        case _:
            return Exchange(*place)
