"""Windowed streams: between saying how records are put into windows and what is done with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from firesteel.common.typeinfo import TypeInformation, Types
from firesteel.datastream.field_aggregates import FieldAggregates
from firesteel.datastream.fields import Field, check_field
from firesteel.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    Function,
    NullByteKeySelector,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from firesteel.datastream.given import OutputType, check_function, check_millis, check_output_type
from firesteel.datastream.output_tag import OutputTag
from firesteel.datastream.pre_combining import obstacle
from firesteel.datastream.window import Evictor, MergingWindowAssigner, Trigger, WindowAssigner
from firesteel.datastream.window.evictors import check_evictor
from firesteel.datastream.window_functions import PlainAllWindowFunction, PlainWindowFunction
from firesteel.errors import GraphError
from firesteel.graph.nodes import Window

if TYPE_CHECKING:
    from firesteel.datastream.data_stream import DataStream
    from firesteel.datastream.environment import StreamExecutionEnvironment
    from firesteel.datastream.keyed_stream import KeyedStream

Self = TypeVar("Self", bound="Windowing")
ReduceLike = Callable[[Any, Any], Any] | ReduceFunction


class Windowing(FieldAggregates):
    """What windowed streams with and without keys have in common.

    As in PyFlink its methods change it: `windowed.trigger(...)` is about this very stream.
    """

    _apply_kind: type[Function]
    _process_kind: type[Function]
    _plain: Callable[[Any], Function]
    _what: str

    def __init__(self, keyed_stream: KeyedStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        self._keyed_stream = keyed_stream
        self._window_assigner = check_assigner(window_assigner)
        self._window_trigger: Trigger[Any, Any] | None = None
        self._evictor: Evictor[Any, Any] | None = None
        self._allowed_lateness = 0
        self._late_data_output_tag: OutputTag | None = None
        self._pre_combine: bool | None = None

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._keyed_stream.get_execution_environment()

    def get_input_type(self) -> TypeInformation:
        """The type of the records that are put into windows."""
        return self._keyed_stream.get_type()

    # ---- when and with what windows are evaluated

    def trigger(self: Self, trigger: Trigger[Any, Any]) -> Self:
        """Says when windows are evaluated, in the place of the assigner's own trigger."""
        if not isinstance(trigger, Trigger):
            raise GraphError(f"trigger() takes a Trigger such as CountTrigger.of(100), not {trigger!r:.200}")
        self._check_merging(trigger)
        self._window_trigger = trigger
        return self

    def evictor(self: Self, evictor: Evictor[Any, Any]) -> Self:
        """Takes records out of a window when it is evaluated. Windows then keep all their records until they end."""
        self._evictor = check_evictor(evictor)
        return self

    def allowed_lateness(self: Self, time_ms: int) -> Self:
        """For how long after the watermark has passed its end a window takes records, and fires again for each.

        :param time_ms: milliseconds, or a Time or Duration. Without effect for windows by processing time.
        """
        given: Any = time_ms
        millis = given if type(given) is int else check_millis("the allowed lateness", given)
        if millis < 0:
            raise GraphError(f"the allowed lateness must not be negative, and {millis} ms is")
        self._allowed_lateness = millis
        return self

    def side_output_late_data(self: Self, output_tag: OutputTag) -> Self:
        """Sends records that come too late for all of their windows to a side output, instead of dropping and counting
        them (metric numLateRecordsDropped). Read it with `get_side_output(output_tag)` of the resulting stream."""
        if not isinstance(output_tag, OutputTag):
            raise GraphError(f"side_output_late_data() takes an OutputTag, not {output_tag!r:.200}")
        self._late_data_output_tag = output_tag
        return self

    def pre_combine(self: Self, enabled: bool = True) -> Self:
        """Says whether records are combined before they are sent to the subtask of their key, in the place of the setting
        `firesteel.window.pre-combine`. By itself that is done wherever it gives the same results; see docs/windows.md.

        :param enabled: True refuses windows that do not allow it, with the reason, when the stream is described.
        """
        if not isinstance(enabled, bool):
            raise GraphError(f"pre_combine() takes True or False, not {enabled!r:.200}")
        self._pre_combine = enabled
        return self

    # ---- what is done with windows

    def reduce(
        self, reduce_function: ReduceLike, window_function: Any = None, output_type: OutputType = None
    ) -> DataStream:
        """Combine the records of a window into one as they come; with a window function, give it that one."""
        combine = check_function(reduce_function, ReduceFunction, "reduce")
        if window_function is None and output_type is None:
            output_type = self._keyed_stream._type
        return self._then(combine, self._either(window_function), output_type)

    def aggregate(
        self,
        aggregate_function: AggregateFunction,
        window_function: Any = None,
        accumulator_type: OutputType = None,
        output_type: OutputType = None,
    ) -> DataStream:
        """Fold the records of a window into an accumulator as they come; with a window function, give it the result."""
        if not isinstance(aggregate_function, AggregateFunction):
            raise GraphError(f"aggregate() takes an AggregateFunction, not {aggregate_function!r:.200}")
        check_output_type(accumulator_type)
        return self._then(aggregate_function, self._either(window_function), output_type)

    def apply(self, window_function: Any, output_type: OutputType = None) -> DataStream:
        """Give a window function all records of a window. They are kept until then."""
        if isinstance(window_function, self._process_kind):
            raise GraphError(f"apply() takes {self._apply_kind.__name__}s: use process() for {window_function!r:.200}")
        function = check_function(window_function, self._apply_kind, "apply")
        if not isinstance(function, self._apply_kind):
            function = type(self)._plain(function)
        return self._then(None, function, output_type)

    def process(self, process_window_function: Any, output_type: OutputType = None) -> DataStream:
        """Give a function with time and state all records of a window. They are kept until then."""
        if not isinstance(process_window_function, self._process_kind):
            raise GraphError(
                f"process() of {self._what} takes a {self._process_kind.__name__}, not {process_window_function!r:.200}"
            )
        return self._then(None, process_window_function, output_type)

    def _roll(self, method: str, aggregate: Callable[[Field], ReduceFunction], field: Field) -> DataStream:
        return self.reduce(aggregate(check_field(method, field, self._keyed_stream._type)))

    # ---- building

    def _either(self, function: Any) -> Any:
        """A function after reduce or aggregate, which may be of either kind."""
        kinds = (self._apply_kind, self._process_kind)
        if function is None or isinstance(function, kinds):
            return function
        if callable(function) and not isinstance(function, (type, Function)):
            return type(self)._plain(function)
        names = f"{kinds[0].__name__}, a {kinds[1].__name__}"
        raise GraphError(f"the window function of {self._what} must be a {names} or a function, not {function!r:.200}")

    def _check_merging(self, trigger: Trigger[Any, Any]) -> None:
        if isinstance(self._window_assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise GraphError(
                f"{type(self._window_assigner).__name__} merges windows, and {type(trigger).__name__} does not support that: "
                f"use a trigger whose can_merge() is True, and which unites its state in on_merge()"
            )

    def _then(self, combine: Any, function: Any, output_type: OutputType) -> DataStream:
        assigner, tag = self._window_assigner, self._late_data_output_tag
        trigger = self._window_trigger or assigner.get_default_trigger(self.get_execution_environment())
        self._check_merging(trigger)
        operator = Window(
            assigner,
            trigger,
            combine,
            function,
            self._evictor,
            self._allowed_lateness,
            None if tag is None else tag.tag_id,
            self._pre_combine,
        )
        if self._pre_combine and (reason := obstacle(operator)) is not None:
            raise GraphError(f"records of these windows cannot be combined before they are sent: {reason}")
        functions = ", ".join(type(each).__name__ for each in (combine, function) if each is not None)
        stream = self._keyed_stream._then(operator, type(assigner).__name__, output_type)
        return stream.set_description(f"Window({assigner!r}, {type(trigger).__name__}, {functions})")


class WindowedStream(Windowing):
    """The records of each key, in windows."""

    _apply_kind, _process_kind, _plain = WindowFunction, ProcessWindowFunction, PlainWindowFunction
    _what = "keyed windows"


class AllWindowedStream(Windowing):
    """The records of a stream, in windows. One subtask does all of it, since every window is one place."""

    _apply_kind, _process_kind, _plain = AllWindowFunction, ProcessAllWindowFunction, PlainAllWindowFunction
    _what = "windows without keys"

    def __init__(self, data_stream: DataStream, window_assigner: WindowAssigner[Any, Any]) -> None:
        super().__init__(data_stream.key_by(NullByteKeySelector(), key_type=Types.BYTE()), window_assigner)

    def _then(self, combine: Any, function: Any, output_type: OutputType) -> DataStream:
        return super()._then(combine, function, output_type).force_non_parallel()


def check_assigner(given: Any) -> WindowAssigner[Any, Any]:
    """An assigner as the user gave it."""
    if isinstance(given, type) and issubclass(given, WindowAssigner):
        raise GraphError(f"window() takes an assigner, not its class: write {given.__name__}.of(...), or the like")
    if not isinstance(given, WindowAssigner):
        raise GraphError(
            f"window() takes a WindowAssigner such as TumblingEventTimeWindows.of(Time.seconds(10)), not {given!r:.200}"
        )
    return given
