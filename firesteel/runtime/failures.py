"""A user's exception on its way from a slot to the driver: text, so that it needs no class on the other side."""

from __future__ import annotations

import os
import traceback
from typing import Any

from firesteel import errors
from firesteel.graph.plan import PlannedOperator

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class OperatorFailure(Exception):
    """Raised in a slot: user code of this operator failed on this record."""

    def __init__(self, operator: PlannedOperator, doing: str, cause: BaseException) -> None:
        super().__init__(f"{operator} failed {doing}")
        self.operator = operator
        self.doing = doing
        self.cause = cause


def on_record(operator: PlannedOperator, value: Any, cause: BaseException) -> OperatorFailure:
    return OperatorFailure(operator, f"on the record {_short(value)}", cause)


def last_of(values: list[Any], rest: Any) -> Any:
    """The value that an iterator over `values` gave out last."""
    return values[len(values) - rest.__length_hint__() - 1]


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  a user's __repr__ may do anything
        return f"<a {type(value).__name__} whose repr failed: {error}>"
    return text if len(text) <= 500 else f"{text[:500]}... ({len(text)} characters)"


def describe(failure: BaseException) -> dict[str, Any]:
    """A failure as JSON for `rebuild`."""
    if isinstance(failure, OperatorFailure):
        cause = failure.cause
        if isinstance(cause, errors.FiresteelError):  # our own words about the user's mistake need no traceback
            return {
                "kind": type(cause).__name__,
                "message": f"{cause}\n\nIt happened in {failure.operator}, {failure.doing}.",
            }
        text = _user_traceback(cause)
        return {
            "kind": "UserCodeError",
            "message": f"{text}\n\nIt happened in {failure.operator}, {failure.doing}.",
        }
    if isinstance(failure, errors.FiresteelError):
        return {"kind": type(failure).__name__, "message": str(failure)}
    return {"kind": "SlotLostError", "message": "".join(traceback.format_exception(failure)).strip()}


def _user_traceback(cause: BaseException) -> str:
    """The traceback from the user's first frame on: our own frames say nothing about the mistake."""
    trace = cause.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HOME):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(cause), cause, trace)).strip()


def rebuild(described: dict[str, Any], where: str = "") -> errors.FiresteelError:
    """The exception a described failure stands for, on the driver."""
    kind = getattr(errors, described["kind"], errors.SlotLostError)
    error: errors.FiresteelError = kind(described["message"] + where)
    return error
