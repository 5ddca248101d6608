"""What a program describes: a graph of frozen nodes. Building one runs nothing.

Nodes name their inputs by number, so renaming an operator (`.name()`, `.uid()`) replaces one node and no other.
`union`, `key_by` and `rebalance` are not nodes: they say how the edges into the next node run.
"""

from __future__ import annotations

import enum
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from firesteel.common.typeinfo import TypeInformation
from firesteel.connectors.base import Sink, Source
from firesteel.errors import GraphError


class Partitioning(enum.Enum):
    """To which subtasks of the consumer a record goes."""

    FORWARD = "forward"  # to the subtask of the same index
    KEY = "hash"  # to the subtask that owns the key's group
    REBALANCE = "rebalance"  # round robin over all
    RESCALE = "rescale"  # round robin over a few: those that share this subtask's part of the range
    SHUFFLE = "shuffle"  # at random
    BROADCAST = "broadcast"  # to all
    GLOBAL = "global"  # to the first
    CUSTOM = "custom"  # to the one a user's Partitioner names


class Chaining(enum.Enum):
    """Which neighbours an operator may share its level with, and hand records to by a function call."""

    ALWAYS = "always"
    HEAD = "head"  # what follows it, and not what is before it
    NEVER = "never"  # neither


@dataclass(frozen=True)
class Map:
    """One output for each input."""

    function: Any


@dataclass(frozen=True)
class FlatMap:
    """Any number of outputs for each input."""

    function: Any


@dataclass(frozen=True)
class Filter:
    """The inputs for which the function holds."""

    function: Any


@dataclass(frozen=True)
class Process:
    """A ProcessFunction, or a KeyedProcessFunction when the input is keyed."""

    function: Any


@dataclass(frozen=True)
class Reduce:
    """The running reduction of each key: one update for each input."""

    function: Any


@dataclass(frozen=True)
class Window:
    """The records of a key, put into windows and given out, combined or evaluated, when a trigger says so."""

    assigner: Any  # a WindowAssigner
    trigger: Any  # a Trigger
    combine: Any = None  # a ReduceFunction, a function or an AggregateFunction; None: windows keep all their records
    function: Any = None  # evaluates what is in a window; None: it is given out as it is
    evictor: Any = None  # an Evictor
    allowed_lateness: int = 0  # in milliseconds
    late_tag: str | None = None  # the OutputTag's id for records that come too late
    pre_combine: bool | None = None  # whether to combine records before they are sent; None: as the job's settings say


@dataclass(frozen=True)
class CoMap:
    """One output for each input of either of two streams."""

    function: Any


@dataclass(frozen=True)
class CoFlatMap:
    """Any number of outputs for each input of either of two streams."""

    function: Any


@dataclass(frozen=True)
class CoProcess:
    """A CoProcessFunction, or a KeyedCoProcessFunction when both inputs are keyed."""

    function: Any


@dataclass(frozen=True)
class BroadcastProcess:
    """A BroadcastProcessFunction, or a KeyedBroadcastProcessFunction when the first input is keyed."""

    function: Any
    descriptors: tuple[Any, ...]  # of the broadcast states that records of the second input fill


@dataclass(frozen=True)
class IntervalJoin:
    """A ProcessJoinFunction for each pair of records of one key, the right one `lower` to `upper` ms after the left."""

    function: Any
    lower: int
    upper: int
    left_late: Any = None  # the OutputTag for records behind the watermark; None: they are dropped
    right_late: Any = None


@dataclass(frozen=True)
class AssignTimestamps:
    """Timestamps and watermarks by a WatermarkStrategy, in the place of whatever there were."""

    strategy: Any


@dataclass(frozen=True)
class Read:
    """Records of a source, with timestamps and watermarks if there is a strategy for them."""

    source: Source
    strategy: Any = None


@dataclass(frozen=True)
class Write:
    """Records into a sink."""

    sink: Sink


@dataclass(frozen=True)
class Collect:
    """Records handed to the driver (`execute_and_collect`)."""


@dataclass(frozen=True)
class ToFrame:
    """The records of an epoch into a DataFrame: the first half of `transform_dataframe`."""

    transform: Any  # a FrameTransform


@dataclass(frozen=True)
class FromFrame:
    """The rows of the DataFrame that came of it, on a level of its own: the second half."""


Operator = (
    Map
    | FlatMap
    | Filter
    | Process
    | Reduce
    | Window
    | CoMap
    | CoFlatMap
    | CoProcess
    | BroadcastProcess
    | IntervalJoin
    | AssignTimestamps
    | Read
    | Write
    | Collect
    | ToFrame
    | FromFrame
)


@dataclass(frozen=True)
class Input:
    """An edge as the program describes it: where records come from and how they are spread."""

    node: int
    partitioning: Partitioning = Partitioning.FORWARD
    explicit: bool = False  # the user asked for it, so differing parallelism is an error and not a rebalance
    key_selector: Any = None  # a KeySelector or a function; for CUSTOM what the partitioner is given
    partitioner: Any = None  # a Partitioner or a function of (key, number of partitions)
    port: int = 0  # which of the operator's inputs: 1 for the second of two connected streams
    side: str | None = None  # the OutputTag's id when it is a side output


@dataclass(frozen=True)
class Node:
    """One operator of a program."""

    id: int
    operator: Operator
    name: str
    inputs: tuple[Input, ...]
    defined_at: str
    uid: str | None = None
    parallelism: int | None = None
    max_parallelism: int | None = None
    chaining: Chaining = Chaining.ALWAYS
    output_type: TypeInformation | None = None  # as declared; None: anything
    side_types: Mapping[str, TypeInformation | None] = field(default_factory=dict)  # OutputTag id -> its declared type
    description: str | None = None

    @property
    def keyed(self) -> bool:
        return any(edge.partitioning is Partitioning.KEY for edge in self.inputs)


class Graph:
    """The nodes of one program, in the order they were described (inputs before consumers)."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._next = 0
        self._executed = 0  # nodes below this number were part of a job already

    def add(self, operator: Operator, name: str, inputs: tuple[Input, ...], **settings: Any) -> Node:
        node = Node(self._next, operator, name, inputs, user_code_location(), **settings)
        self._next += 1
        self._nodes[node.id] = node
        return node

    def remove(self, node_id: int) -> None:
        """Take back a node that nothing reads from."""
        del self._nodes[node_id]

    def change(self, node_id: int, **settings: Any) -> None:
        self._nodes[node_id] = replace(self._nodes[node_id], **settings)

    def __getitem__(self, node_id: int) -> Node:
        return self._nodes[node_id]

    def nodes(self) -> tuple[Node, ...]:
        """What the next job consists of: everything described since the last one, and what that reads from."""
        needed: set[int] = set()
        for node in reversed(self._nodes.values()):
            if node.id >= self._executed or node.id in needed:
                needed.add(node.id)
                needed.update(edge.node for edge in node.inputs)
        return tuple(node for node in self._nodes.values() if node.id in needed)

    def executed(self) -> None:
        """A job was made of it. Streams can still be used, but their sinks do not run again."""
        self._executed = self._next

    def sinks(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes() if isinstance(node.operator, (Write, Collect)))

    def clear(self) -> None:
        self._nodes.clear()


def user_code_location() -> str:
    """`job.py:42`, the nearest caller outside firesteel: where the user described this operator."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(home):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def check_positive(what: str, value: Any) -> int:
    """A parallelism given by the user."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise GraphError(f"{what} must be a whole number of at least 1, not {value!r}")
    return value
