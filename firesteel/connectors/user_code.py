"""User functions inside connectors: what they are told about where they run, and how their failures are reported."""

from __future__ import annotations

import os
import traceback
from typing import Any

from firesteel.connectors.base import EnumeratorContext, ReaderContext
from firesteel.errors import FiresteelError, StateError, UserCodeError

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class FunctionContext:
    """What `open()` of a function in a source or sink is given: RuntimeContext's methods about the place it runs in."""

    def __init__(self, context: ReaderContext | EnumeratorContext, kind: str) -> None:
        self._context = context
        self._kind = kind

    def get_task_name(self) -> str:
        return self._context.uid

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._context.uid} ({self.get_index_of_this_subtask() + 1}/{self._context.parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        return self._context.parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._context.subtask if isinstance(self._context, ReaderContext) else 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise StateError(
            f"{self._kind} {self._context.uid!r} uses {name}() of its context, but a {self._kind} has no keyed state and no "
            f"metrics. Keep them in a map() or process() beside it"
        )


def user_error(error: BaseException, where: str) -> FiresteelError:
    """What a user's function raised, with its traceback from the user's first frame on, and where it was."""
    if isinstance(error, FiresteelError):
        return error
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HOME):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace)).strip()
    return UserCodeError(f"{text}\n\nIt happened {where}.")
