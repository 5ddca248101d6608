"""What a harness puts into a slot: stores that watch for changes in place, and an end of the stream that records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from firesteel.datastream.output_tag import OutputTag
from firesteel.errors import SerializationError
from firesteel.graph.plan import PlannedOperator
from firesteel.runtime.assembly import Assembly
from firesteel.runtime.flow import Emitter, Times, Values
from firesteel.state.native import NativeState
from firesteel.state.store import Store
from firesteel.testing.watching import Held, MutationError, WatchedStore, is_atomic

FUNCTION = "function"
"""The uid of the operator that a FunctionHarness is about."""


class WatchedEmitter(Emitter):
    """Remembers what functions gave out until it is pushed, which is when a batch is through: it has to be the same then."""

    def __init__(self, count: list[int], check: Callable[[Values], Values] | None, owner: str) -> None:
        super().__init__(count, check)
        self._owner = owner
        self._given: list[Held] = []

    def noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            results = call(*arguments)
            return None if results is None else self._each(results)

        return noted

    def noting_one(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def noted(value: Any) -> Any:
            result = call(value)
            self._note(result)
            return result

        return noted

    def _each(self, results: Iterable[Any]) -> Iterator[Any]:
        for result in results:
            tagged = type(result) is tuple and len(result) == 2 and type(result[0]) is OutputTag
            self._note(result[1] if tagged else result)
            yield result

    def _note(self, value: Any) -> None:
        if not is_atomic(value):
            with contextlib.suppress(Exception):  # what cannot be pickled can still be handed on by a call
                self._given.append(Held(value))

    def push(self, values: Values, times: Times) -> None:
        self._compare()
        super().push(values, times)

    def push_side(self, tag_id: str, values: Values, times: Times) -> None:
        self._compare()
        super().push_side(tag_id, values, times)

    def forget_given(self) -> None:
        """Its batch has failed, and is not pushed."""
        self._given.clear()

    def _compare(self) -> None:
        given, self._given = self._given, []
        for held in given:
            if held.changed():
                raise MutationError(_changed(held, f"It happened in {self._owner}"))


class WatchedAssembly(Assembly):
    """A slot whose state and functions are watched."""

    def _create_emitter(self, operator: PlannedOperator, check: Callable[[Values], Values] | None) -> Emitter:
        return WatchedEmitter(self.counts[operator.uid], check, str(operator))

    def _create_store(self, operator: PlannedOperator, native: NativeState | None) -> Store:
        return WatchedStore(self._key_groups(operator), str(operator))

    def check_state(self, *, everything: bool) -> None:
        for operator in self.stores:
            if isinstance(operator.store, WatchedStore):
                operator.store.check(everything=everything)


class RecordingAssembly(WatchedAssembly):
    """The slot of a FunctionHarness: the function's output is recorded instead of being sent on."""

    recording: RecordingEmitter

    def _emitter(self, operator: PlannedOperator) -> Emitter:
        emitter = super()._emitter(operator)
        if operator.uid == FUNCTION:
            emitter = self.recording = self._create_recording(operator, emitter)
        return emitter

    def _create_recording(self, operator: PlannedOperator, emitter: Emitter) -> RecordingEmitter:
        return RecordingEmitter(self.counts[operator.uid], emitter._check, str(operator))


class TrustingAssembly(RecordingAssembly):
    """The same without a look at what functions do to records that they have emitted."""

    def _create_recording(self, operator: PlannedOperator, emitter: Emitter) -> RecordingEmitter:
        return TrustingEmitter(self.counts[operator.uid], emitter._check, str(operator))


class RecordingEmitter(WatchedEmitter):
    """Records the function's output and every side output, whether anybody asked for it or not."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.main = Recorder()
        self.sides: dict[str, Recorder] = {}
        self.add(self.main)

    @property
    def tags(self) -> list[str]:
        return _Every()

    def push_side(self, tag_id: str, values: Values, times: Times) -> None:
        self._compare()
        self._count[1] += len(values)
        self.sides.setdefault(tag_id, Recorder()).push(values, times)

    def check(self, *, everything: bool) -> None:
        for recorder in (self.main, *self.sides.values()):
            recorder.check(everything=everything)

    def forget(self) -> None:
        """The epoch ends: all that was emitted is on its way, and what happens to the objects matters no more."""
        for recorder in (self.main, *self.sides.values()):
            recorder.forget()


class TrustingEmitter(RecordingEmitter):
    noting = Emitter.noting
    noting_one = Emitter.noting_one


class _Every(list[str]):
    def __contains__(self, tag_id: object) -> bool:
        return True


class Recorder:
    """Takes records as another slot would get them: pickled. Until the epoch ends they may be waiting in a batch, so an
    object must not be changed after it was emitted."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, int | None]] = []
        self.watermarks: list[int] = []
        self.given: list[Held] = []
        self._marks = (0, 0)  # how many were given by the check before the last one, and by the last one

    def push(self, values: Values, times: Times) -> None:
        for index, value in enumerate(values):
            time = None if times is None else times[index]
            if is_atomic(value):
                self.records.append((value, time))
                continue
            self.given.append(held := hold(value, "emitted"))
            self.records.append((held.before, time))

    def advance(self, watermark: int) -> None:
        self.watermarks.append(watermark)

    def idle(self, idle: bool) -> None:
        """Nobody here waits for others."""

    def forget(self) -> None:
        self.given.clear()
        self._marks = (0, 0)

    def check(self, *, everything: bool) -> None:
        """Raise MutationError if a record was changed after it was emitted: one of the last two calls', or any."""
        before, last = self._marks
        suspects = self.given if everything else self.given[before:]
        self._marks = (last, len(self.given))
        for held in suspects:
            if held.changed():
                self.given.remove(held)
                raise MutationError(_changed(held))


def _changed(held: Held, where: str = "") -> str:
    return (
        f"the record {held.before!r:.200} was changed to {held.value!r:.200} after it was emitted. Emitted records wait in a "
        f"batch before they are sent on, so the next operator would see the change. Emit a copy, or a new object each time. "
        f"{where}"
    ).strip()


def hold(value: Any, what: str) -> Held:
    """The value as it is now.

    :raises SerializationError: it cannot be sent to another slot.
    """
    try:
        return Held(value)
    except Exception as error:
        raise SerializationError(
            f"the {what} record {value!r:.300} of type {type(value).__qualname__} cannot be pickled, so it could not be sent "
            f"from one operator to another: {error}"
        ) from error


def arrived(value: Any) -> Any:
    """The value as it arrives from another slot."""
    return value if is_atomic(value) else hold(value, "input").before
