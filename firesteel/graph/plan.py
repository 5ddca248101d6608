"""From a program's graph to the job plan: uids, parallelism, levels, edges.

Every operator has a **level**: sources 0; others the maximum over their inputs of the input's level, plus 1 where the edge
is not a forward edge, or where the program keeps the two apart. Operators of one level joined by forward edges call each
other directly; every other edge is an exchange through Spark's shuffle. All of it runs as one linear chain of stages, level
after level, so no operator ever runs twice however the graph branches.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from firesteel.common.execution_config import MAX_KEY_GROUPS
from firesteel.common.typeinfo import TypeInformation
from firesteel.errors import GraphError
from firesteel.graph.nodes import Chaining, FromFrame, Graph, Input, Node, Operator, Partitioning, Read

DEFAULT_MAX_PARALLELISM = 128


@dataclass(frozen=True)
class PlannedEdge:
    """An edge between two planned operators; `direct` ones are calls, the others exchanges addressed by `id`."""

    id: int
    upstream: int
    downstream: int
    partitioning: Partitioning
    direct: bool
    key_selector: Any = None
    partitioner: Any = None
    port: int = 0
    side: str | None = None

    def targets(self, subtask: int, upstream: int, downstream: int) -> range:
        """The subtasks of the consumer to which one subtask of the producer sends records or, with GLOBAL to all but the
        first, watermarks only; given both parallelisms."""
        if self.partitioning is Partitioning.FORWARD:
            return range(subtask, subtask + 1)
        if self.partitioning is Partitioning.RESCALE:
            first = subtask * downstream // upstream
            return range(first, max(first + 1, (subtask + 1) * downstream // upstream))
        return range(downstream)


@dataclass(frozen=True)
class PlannedOperator:
    """An operator with everything decided."""

    id: int
    uid: str
    name: str
    operator: Operator
    level: int
    parallelism: int
    max_parallelism: int
    defined_at: str
    inputs: tuple[PlannedEdge, ...]
    output_type: TypeInformation | None = None
    side_types: Mapping[str, TypeInformation | None] = field(default_factory=dict)  # of the side outputs somebody reads
    max_parallelism_given: bool = False  # by the program, so that a checkpoint with another one is refused
    description: str | None = None  # as given; None: the name says it all
    object_reuse: bool = False  # nobody changes records, so that those who read its output can share them

    @property
    def kind(self) -> str:
        return type(self.operator).__name__

    @property
    def keyed(self) -> bool:
        return any(edge.partitioning is Partitioning.KEY for edge in self.inputs)

    def key_selector(self, port: int = 0) -> Any:
        """What gives the key of a record that comes in at this port."""
        return next(edge.key_selector for edge in self.inputs if edge.port == port)

    def __str__(self) -> str:
        return f"operator '{self.name}' (uid {self.uid}, defined at {self.defined_at})"


@dataclass(frozen=True)
class JobPlan:
    """A job, ready to run: operators in topological order."""

    operators: tuple[PlannedOperator, ...]

    @property
    def levels(self) -> int:
        return 1 + max(operator.level for operator in self.operators)

    @property
    def slots(self) -> int:
        return max(operator.parallelism for operator in self.operators)

    def level(self, index: int) -> Iterator[PlannedOperator]:
        return (operator for operator in self.operators if operator.level == index)

    def outputs(self, operator: PlannedOperator) -> list[PlannedEdge]:
        return [edge for other in self.operators for edge in other.inputs if edge.upstream == operator.id]

    def operator(self, operator_id: int) -> PlannedOperator:
        return next(operator for operator in self.operators if operator.id == operator_id)

    def origins(self, operator: PlannedOperator) -> frozenset[str]:
        """The uids of the sources an operator's records come from."""
        if not operator.inputs:
            return frozenset((operator.uid,))
        return frozenset().union(*(self.origins(self.operator(edge.upstream)) for edge in operator.inputs))

    def sources(self) -> list[PlannedOperator]:
        return [operator for operator in self.operators if isinstance(operator.operator, Read)]


def build_plan(
    graph: Graph, parallelism: int, max_parallelism: int | None, chaining: bool = True, object_reuse: bool = False
) -> JobPlan:
    """Decide everything about a program that can be decided before it runs."""
    nodes = graph.nodes()
    if not nodes:
        raise GraphError("the program has no operators: add a source (for example env.from_collection([...])) first")
    if not graph.sinks():
        raise GraphError(
            "the program has no sink, so nothing would be seen of its results: end a stream with print(), sink_to(...) "
            "or execute_and_collect()"
        )
    uids = _uids(nodes)
    planned: dict[int, PlannedOperator] = {}
    edge_ids = iter(range(1 << 30))
    for node in nodes:
        degree = node.parallelism or parallelism
        given = node.max_parallelism or max_parallelism
        ceiling = given or default_max_parallelism(degree)
        if degree > ceiling:
            raise GraphError(
                f"operator '{node.name}' (defined at {node.defined_at}) has parallelism {degree}, above its maximum "
                f"parallelism {ceiling}, the number of key groups its state is divided into. Lower the parallelism, or "
                f"raise the maximum with set_max_parallelism(...) before the job has any state"
            )
        spreads = [_partitioning(node, edge, planned[edge.node], degree) for edge in node.inputs]
        level = max(
            (
                planned[edge.node].level
                + (spread is not Partitioning.FORWARD or not (chaining and _chained(graph[edge.node], node)))
                for edge, spread in zip(node.inputs, spreads, strict=True)
            ),
            default=0,
        )
        inputs = tuple(
            PlannedEdge(
                next(edge_ids),
                edge.node,
                node.id,
                spread,
                spread is Partitioning.FORWARD and planned[edge.node].level == level,
                edge.key_selector,
                edge.partitioner,
                edge.port,
                edge.side,
            )
            for edge, spread in zip(node.inputs, spreads, strict=True)
        )
        planned[node.id] = PlannedOperator(
            node.id,
            uids[node.id],
            node.name,
            node.operator,
            level,
            degree,
            ceiling,
            node.defined_at,
            inputs,
            node.output_type,
            dict(node.side_types),
            given is not None,
            node.description,
            object_reuse,
        )
    return JobPlan(tuple(planned.values()))


def default_max_parallelism(parallelism: int) -> int:
    """How many key groups an operator has if nobody says so, as in Flink: room to grow by half, and 128 at least."""
    enough = 1 << (parallelism + parallelism // 2 - 1).bit_length()
    return min(max(enough, DEFAULT_MAX_PARALLELISM), MAX_KEY_GROUPS)


def _chained(upstream: Node, node: Node) -> bool:
    """Whether the second may be called by the first."""
    apart = upstream.chaining is Chaining.NEVER or node.chaining is not Chaining.ALWAYS
    return not apart and not isinstance(node.operator, FromFrame)


def _partitioning(node: Node, edge: Input, upstream: PlannedOperator, parallelism: int) -> Partitioning:
    if edge.partitioning is not Partitioning.FORWARD or upstream.parallelism == parallelism:
        return edge.partitioning
    if edge.explicit:
        raise GraphError(
            f"forward() into '{node.name}' (defined at {node.defined_at}) needs equal parallelism on both sides, but "
            f"'{upstream.name}' has {upstream.parallelism} and '{node.name}' has {parallelism}. Use rebalance() instead"
        )
    return Partitioning.REBALANCE


def _uids(nodes: tuple[Node, ...]) -> dict[int, str]:
    """Given uids, and for the others a name that depends only on the operator, its inputs and its place among equals.

    So adding an operator elsewhere in the program does not change them; still, only a given uid survives any edit.
    """
    given = Counter(node.uid for node in nodes if node.uid is not None)
    for uid, count in given.items():
        if count > 1:
            places = ", ".join(f"'{n.name}' at {n.defined_at}" for n in nodes if n.uid == uid)
            raise GraphError(f"uid {uid!r} is used by {count} operators ({places}); a uid names one operator's state")
    uids: dict[int, str] = {}
    seen: Counter[str] = Counter()
    for node in nodes:
        if node.uid is not None:
            uids[node.id] = node.uid
            continue
        inputs = [
            f"{uids[edge.node]}/{edge.partitioning.value}"
            + (f"/{edge.port}/{edge.side}" if edge.port or edge.side else "")
            for edge in node.inputs
        ]
        shape = "|".join([type(node.operator).__name__, node.name, *inputs])
        seen[shape] += 1
        digest = hashlib.sha256(f"{shape}#{seen[shape]}".encode()).hexdigest()[:8]
        slug = re.sub(r"[^a-z0-9]+", "-", node.name.lower()).strip("-")[:32] or "operator"
        uids[node.id] = f"{slug}-{digest}"
    return uids
