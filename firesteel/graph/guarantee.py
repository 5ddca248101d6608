"""What a job as a whole promises: no more than the weakest of its parts.

| part | at most once | at least once | exactly once |
| --- | --- | --- | --- |
| source | cannot be read again | | can be read again from a position |
| inside | | checkpointing mode AT_LEAST_ONCE | checkpointing mode EXACTLY_ONCE |
| sink | | writes again after a failure | commits with the checkpoint |

Without checkpoints there is nothing to recover from, and no promise about a job that fails.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.graph.nodes import Graph, Node, Read, Write
from firesteel.graph.plan import JobPlan, PlannedOperator


class Level(enum.IntEnum):
    """From weak to strong."""

    NONE = 0
    AT_MOST_ONCE = 1
    AT_LEAST_ONCE = 2
    EXACTLY_ONCE = 3

    def __str__(self) -> str:
        return "no guarantee" if self is Level.NONE else self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Guarantee:
    """A job's promise, the parts that keep it from being a better one, and both as a sentence."""

    level: Level
    limited_by: list[str]
    text: str


_OF_SINK = {
    DeliveryGuarantee.EXACTLY_ONCE: Level.EXACTLY_ONCE,
    DeliveryGuarantee.AT_LEAST_ONCE: Level.AT_LEAST_ONCE,
    DeliveryGuarantee.NONE: Level.NONE,
}
_WHY = {
    Level.NONE: "it may lose records and write them twice",
    Level.AT_LEAST_ONCE: "after a failure it writes again what it wrote since the last checkpoint",
}


def end_to_end(program: JobPlan | Graph, checkpointing_enabled: bool, mode: Any = None) -> Guarantee:
    """The guarantee from the sources to the sinks.

    :param mode: the CheckpointingMode or its name; None means exactly once.
    """
    if not checkpointing_enabled:
        return Guarantee(
            Level.NONE,
            ["checkpointing is off"],
            "no guarantee, because checkpointing is off: a failure ends the job, and what it had processed by then is not "
            "known. Turn it on with enable_checkpointing(interval)",
        )
    limits = list(_limits(program, getattr(mode, "name", mode)))
    level = min((level for level, _, _ in limits), default=Level.EXACTLY_ONCE)
    weakest = [(part, why) for limit, part, why in limits if limit is level]
    if not weakest:
        return Guarantee(level, [], f"{level}: every source can be read again and every sink is transactional")
    reasons = "; ".join(f"{part}: {why}" for part, why in weakest)
    return Guarantee(level, [part for part, _ in weakest], f"{level}, limited by {reasons}")


def _limits(program: JobPlan | Graph, mode: str | None) -> Iterator[tuple[Level, str, str]]:
    if mode == "AT_LEAST_ONCE":
        why = "records between two checkpoints may have their effect twice"
        yield Level.AT_LEAST_ONCE, "the checkpointing mode AT_LEAST_ONCE", why
    parts: tuple[PlannedOperator, ...] | tuple[Node, ...]
    parts = program.operators if isinstance(program, JobPlan) else program.nodes()
    for part in parts:
        operator = part.operator
        if isinstance(operator, Read) and not operator.source.replayable:
            why = "what it read and lost in a failure cannot be read again"
            yield Level.AT_MOST_ONCE, f"source {_name(part, operator.source)}", why
        elif isinstance(operator, Write):
            level = _OF_SINK[operator.sink.guarantee]
            if level is not Level.EXACTLY_ONCE:
                yield level, f"sink {_name(part, operator.sink)}", _WHY[level]


def _name(part: PlannedOperator | Node, connector: Any) -> str:
    return f"'{part.name}' ({type(connector).__name__}, defined at {part.defined_at})"
