"""A job plan as text for people."""

from __future__ import annotations

from firesteel.graph.nodes import Partitioning
from firesteel.graph.plan import JobPlan, PlannedEdge, PlannedOperator

_ARROWS = {Partitioning.FORWARD: "forward", Partitioning.KEY: "by key", Partitioning.REBALANCE: "rebalanced"}


def explain(plan: JobPlan, name: str) -> str:
    """Levels, operators, edges and parallelism.

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
    return "\n".join(lines)


def _chain(plan: JobPlan, by_id: dict[int, PlannedOperator], operator: PlannedOperator, depth: int) -> list[str]:
    indent = "  " * depth
    keyed = ", keyed" if operator.key_selector is not None else ""
    lines = [f"{indent}{operator.name} [{operator.kind}{keyed}, x{operator.parallelism}, uid {operator.uid}]"]
    lines += [f"{indent}  <- {_origin(by_id, edge)}" for edge in operator.inputs if not edge.direct]
    for edge in plan.outputs(operator):
        if edge.direct:
            lines += _chain(plan, by_id, by_id[edge.downstream], depth + 1)
    return lines


def _origin(by_id: dict[int, PlannedOperator], edge: PlannedEdge) -> str:
    upstream = by_id[edge.upstream]
    return f"{upstream.name} of level {upstream.level}, {_ARROWS[edge.partitioning]}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
