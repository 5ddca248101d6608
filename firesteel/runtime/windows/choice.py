"""Which of the two operators runs an operator's windows."""

from __future__ import annotations

from collections.abc import Callable

from firesteel.graph import nodes
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.context import SlotRuntimeContext
from firesteel.runtime.flow import Emitter
from firesteel.runtime.keyed_state import KeyedState
from firesteel.runtime.windows.aligned import AlignedWindowOperator, is_aligned
from firesteel.runtime.windows.operator import WindowOperator


def window_operator(
    operator: PlannedOperator,
    kind: nodes.Window,
    keyed: KeyedState,
    context: SlotRuntimeContext,
    emitter: Emitter,
    now: Callable[[], int],
) -> WindowOperator:
    """The windows of one operator in one subtask."""
    run = AlignedWindowOperator if is_aligned(kind) else WindowOperator
    return run(operator, kind, keyed, context, emitter, now)
