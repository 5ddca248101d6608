from __future__ import annotations

from typing import Any

import pytest

from firesteel.connectors.base import SinkWriter, WriterContext
from firesteel.connectors.function_sink import SinkFunctionSink
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.errors import GraphError, StateError, UserCodeError


def writer_of(function: Any) -> SinkWriter:
    return SinkFunctionSink(function).create_writer(WriterContext("job", "my-sink", 1, 1, 3))


class Recording:
    """A SinkFunction as in Java, with the optional hooks."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def open(self, context: Any) -> None:
        self.calls.append(("open", context.get_index_of_this_subtask(), context.get_number_of_parallel_subtasks()))

    def invoke(self, value: Any, context: Any) -> None:
        self.calls.append((value, context.timestamp()))

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self) -> None:
        self.calls.append("close")


def test_a_sink_function_is_opened_called_for_each_record_flushed_and_closed() -> None:
    function = Recording()
    writer = writer_of(function)
    writer.write(["a", "b"])
    writer.flush()
    writer.close()
    assert function.calls == [("open", 1, 3), ("a", None), ("b", None), "flush", "close"]


def test_a_plain_function_is_called_for_each_record() -> None:
    seen: list[int] = []
    writer = writer_of(seen.append)
    writer.write([1, 2])
    writer.flush()
    writer.close()
    assert seen == [1, 2]


def test_invoke_may_leave_out_the_context() -> None:
    class Short:
        seen: list[int] = []

        def invoke(self, value: int) -> None:
            self.seen.append(value)

    writer_of(Short()).write([1])
    assert Short.seen == [1]


def test_the_context_knows_the_time() -> None:
    class Timed:
        def invoke(self, value: Any, context: Any) -> None:
            assert context.current_processing_time() > 1_600_000_000_000
            assert context.current_watermark() == -(2**63)

    writer_of(Timed()).write([1])


def test_a_failure_names_the_record_and_starts_in_the_users_code() -> None:
    def fail(value: int) -> None:
        if value == 2:
            raise ValueError("no twos")

    with pytest.raises(UserCodeError) as caught:
        writer_of(fail).write([1, 2, 3])
    message = str(caught.value)
    assert "on the record 2" in message
    assert "ValueError: no twos" in message
    assert "function_sink.py" not in message.replace("test_function_sink.py", "")


def test_a_failure_to_open_names_the_sink() -> None:
    class Closed:
        def open(self, context: Any) -> None:
            raise OSError("no route to host")

        def invoke(self, value: Any) -> None: ...

    with pytest.raises(UserCodeError, match=r"(?s)no route to host.*in open\(\) of sink 'my-sink'"):
        writer_of(Closed())


def test_a_sink_function_has_no_state() -> None:
    class Stateful:
        def open(self, context: Any) -> None:
            context.get_state("x")

        def invoke(self, value: Any) -> None: ...

    with pytest.raises(StateError, match=r"sink function 'my-sink' uses get_state\(\)"):
        writer_of(Stateful())


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(GraphError, match="SinkFunction"):
        SinkFunctionSink("print")


def test_records_may_come_again_after_a_failure() -> None:
    assert SinkFunctionSink(print).guarantee is DeliveryGuarantee.AT_LEAST_ONCE
