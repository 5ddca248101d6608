"""The slot's half of `TwoPhaseCommitSinkFunction`."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from firesteel.common.crashpoints import crash_point
from firesteel.connectors.base import Json, SinkWriter, WriterContext
from firesteel.connectors.function_sink import SinkContext
from firesteel.connectors.part_names import short_hash
from firesteel.connectors.two_phase_commit import TransactionContext, TwoPhaseCommitSinkFunction
from firesteel.connectors.two_phase_commit_journal import Journal, encode_handle
from firesteel.connectors.user_code import FunctionContext, user_error

log = logging.getLogger("firesteel")


@dataclass(frozen=True)
class _Open:
    name: str
    handle: Any
    begun_ms: int


class TransactionWriter(SinkWriter):
    """One transaction from barrier to barrier, and none when there are no records."""

    def __init__(self, function: TwoPhaseCommitSinkFunction, context: WriterContext) -> None:
        self._function, self._context = function, context
        self._journal = Journal(context)
        self._invoke = _invocation(function)
        self._named = _takes(function.begin_transaction, 1)
        self._sequence = 0
        self._open: _Open | None = None
        self._call("in open()", function.open, FunctionContext(context, "sink function"))

    def write(self, values: Sequence[Any]) -> None:
        if not values:
            return
        transaction = (self._open or self._begin()).handle
        invoke = self._invoke
        value = None
        try:
            for value in values:
                invoke(transaction, value)
        except Exception as error:
            raise user_error(error, f"on the record {value!r:.500}") from error

    def _begin(self) -> _Open:
        context = self._context
        while True:
            name = self._journal.name(context.incarnation, context.subtask, self._sequence)
            if not self._journal.taken(name):  # by another writer of this incarnation, if it was made twice
                break
            self._sequence += 1
        begun_ms = time.time_ns() // 1_000_000
        handle = self._call("in begin_transaction()", self._function.begin_transaction, *self._names())
        crash_point("txn-after-begin")
        self._sequence += 1
        self._open = _Open(name, handle, begun_ms)
        self._journal.add(name, encode_handle(handle, self._where("in begin_transaction()")))
        crash_point("txn-after-journal")
        return self._open

    def _names(self) -> tuple[TransactionContext, ...]:
        if not self._named:
            return ()
        context, sequence = self._context, self._sequence
        name = (
            f"{short_hash(context.job_id)}-{short_hash(context.uid)}-{context.incarnation}-{context.subtask}-{sequence}"
        )
        return (
            TransactionContext(
                f"firesteel-{name}", context.job_id, context.uid, context.incarnation, context.subtask, sequence
            ),
        )

    def prepare_commit(self) -> list[Json]:
        opened = self._open
        if opened is None:
            return []
        self._call("in pre_commit()", self._function.pre_commit, opened.handle)
        handle = encode_handle(opened.handle, self._where("in pre_commit()"))
        self._open = None  # from here on it is the committer's to abort
        return [
            {
                "transaction": opened.name,
                "incarnation": self._context.incarnation,
                "begun_ms": opened.begun_ms,
                "handle": handle,
            }
        ]

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            try:
                self._function.abort(opened.handle)
                self._journal.remove(opened.name)
            except Exception as error:  # noqa: BLE001  the slot ends for another reason; the next incarnation aborts it
                log.warning("sink %s could not abort the transaction %s: %s", self._context.uid, opened.name, error)
        self._call("in close()", self._function.close)

    def _where(self, method: str) -> str:
        return f"{method} of sink {self._context.uid!r}"

    def _call(self, method: str, hook: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return hook(*arguments)
        except Exception as error:
            raise user_error(error, self._where(method)) from error


def _invocation(function: TwoPhaseCommitSinkFunction) -> Callable[[Any, Any], Any]:
    invoke: Callable[..., Any] = function.invoke
    if not _takes(invoke, 3):
        return invoke
    context = SinkContext()
    return lambda transaction, value: invoke(transaction, value, context)


def _takes(method: Callable[..., Any], arguments: int) -> bool:
    try:
        inspect.signature(method).bind(*[None] * arguments)
    except TypeError:
        return False
    return True
