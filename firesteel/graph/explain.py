"""A job plan as text for people, and as JSON for programs that read Flink's."""

from __future__ import annotations

import json
from typing import Any

from firesteel.graph.guarantee import Guarantee
from firesteel.graph.nodes import Collect, Partitioning, Read, Write
from firesteel.graph.plan import JobPlan, PlannedEdge, PlannedOperator

_ARROWS = {
    Partitioning.FORWARD: "forward",
    Partitioning.KEY: "by key",
    Partitioning.REBALANCE: "rebalanced",
    Partitioning.RESCALE: "rescaled",
    Partitioning.SHUFFLE: "at random",
    Partitioning.BROADCAST: "to all subtasks",
    Partitioning.GLOBAL: "to the first subtask",
    Partitioning.CUSTOM: "by a partitioner",
}


def explain(plan: JobPlan, name: str, guarantee: Guarantee | None = None) -> str:
    """Levels, operators, edges, parallelism and what the job promises.

    One level is one Spark stage; operators inside it that are drawn beneath each other call each other directly.
    """
    lines = [
        f"{name}: {_count(len(plan.operators), 'operator')} in {_count(plan.levels, 'level')} on {_count(plan.slots, 'slot')}"
    ]
    by_id = {operator.id: operator for operator in plan.operators}
    for level in range(plan.levels):
        lines += ["", f"level {level}" + (" (reads the sources)" if level == 0 else " (after a shuffle)")]
        for operator in plan.level(level):
            if not any(edge.direct for edge in operator.inputs):
                lines += _chain(plan, by_id, operator, depth=1)
    if guarantee is not None:
        lines += ["", f"guarantee: {guarantee.text}"]
    return "\n".join(lines)


def _chain(plan: JobPlan, by_id: dict[int, PlannedOperator], operator: PlannedOperator, depth: int) -> list[str]:
    indent = "  " * depth
    keyed = ", keyed" if operator.keyed else ""
    about = f": {' '.join(operator.description.split())}" if operator.description not in (None, operator.name) else ""
    lines = [f"{indent}{operator.name} [{operator.kind}{keyed}, x{operator.parallelism}, uid {operator.uid}]{about}"]
    lines += [f"{indent}  <- {_origin(by_id, edge)}" for edge in operator.inputs if not edge.direct]
    for edge in plan.outputs(operator):
        if edge.direct:
            lines += _chain(plan, by_id, by_id[edge.downstream], depth + 1)
    return lines


def _origin(by_id: dict[int, PlannedOperator], edge: PlannedEdge) -> str:
    upstream = by_id[edge.upstream]
    side = f", side output {edge.side}" if edge.side is not None else ""
    return f"{upstream.name} of level {upstream.level}, {_ARROWS[edge.partitioning]}{side}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def execution_plan(plan: JobPlan) -> str:
    """The plan in the JSON of Flink's `getExecutionPlan`, which its plan visualizer draws."""
    return json.dumps({"nodes": [_node(operator) for operator in plan.operators]}, indent=2)


def _node(operator: PlannedOperator) -> dict[str, Any]:
    prefix, pact = "", "Operator"
    if isinstance(operator.operator, Read):
        prefix, pact = "Source: ", "Data Source"
    elif isinstance(operator.operator, (Write, Collect)):
        prefix, pact = "Sink: ", "Data Sink"
    node: dict[str, Any] = {
        "id": operator.id + 1,  # Flink counts from 1
        "type": f"{prefix}{operator.name}",
        "pact": pact,
        "contents": operator.description or f"{prefix}{operator.name}",
        "parallelism": operator.parallelism,
    }
    if operator.inputs:
        node["predecessors"] = [
            {"id": edge.upstream + 1, "ship_strategy": edge.partitioning.name.replace("KEY", "HASH"), "side": "second"}
            for edge in operator.inputs
        ]
    return node
