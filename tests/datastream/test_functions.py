import pytest

from firesteel.datastream import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    SinkFunction,
    SourceFunction,
    TimeDomain,
)
from firesteel.datastream.functions import NullByteKeySelector


@pytest.mark.parametrize("kind", [ProcessFunction, KeyedProcessFunction, CoProcessFunction, KeyedCoProcessFunction])
def test_process_functions_do_nothing_on_timers_unless_they_say_so(kind):
    methods = {name: lambda self, value, ctx: None for name in kind.__abstractmethods__}
    assert type("Silent", (kind,), methods)().on_timer(5, None) is None


@pytest.mark.parametrize("kind", [KeyedProcessFunction, KeyedCoProcessFunction])
def test_contexts_on_keyed_streams_have_the_key_and_in_on_timer_the_time_domain(kind):
    assert kind.Context.__abstractmethods__ == {"get_current_key", "timer_service", "timestamp"}
    assert kind.OnTimerContext.__abstractmethods__ == kind.Context.__abstractmethods__ | {"time_domain"}
    assert issubclass(kind.OnTimerContext, kind.Context)


def test_one_context_can_serve_functions_over_one_stream_and_over_two():
    class Both(KeyedProcessFunction.OnTimerContext, KeyedCoProcessFunction.OnTimerContext):
        def get_current_key(self):
            return "key"

        def timer_service(self):
            return None

        def timestamp(self):
            return 5

        def time_domain(self):
            return TimeDomain.EVENT_TIME

    assert isinstance(Both(), KeyedCoProcessFunction.Context)


def test_source_and_sink_functions_have_javas_methods():
    assert SourceFunction.__abstractmethods__ == {"run", "cancel"}
    assert SourceFunction.SourceContext.__abstractmethods__ == {
        "collect",
        "collect_with_timestamp",
        "emit_watermark",
        "mark_as_temporarily_idle",
    }
    assert SinkFunction.__abstractmethods__ == {"invoke"}


def test_the_null_key_is_the_same_for_all():
    assert {NullByteKeySelector().get_key(value) for value in (1, "a", None)} == {0}
