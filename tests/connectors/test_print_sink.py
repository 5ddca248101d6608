from __future__ import annotations

import pytest

from firesteel.common import Row, Types
from firesteel.connectors.base import WriterContext
from firesteel.connectors.guarantee import DeliveryGuarantee
from firesteel.connectors.print_sink import PrintSink


def printed(sink: PrintSink, values: list[object], parallelism: int = 1, subtask: int = 0) -> None:
    writer = sink.create_writer(WriterContext("job", "print", 1, subtask, parallelism))
    writer.write(values)
    writer.flush()


def test_undeclared_records_look_as_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    printed(PrintSink(), [("a", 1), None, Row("a", 1)])
    assert capsys.readouterr().out == "('a', 1)\nNone\n<Row('a', 1)>\n"


def test_declared_records_look_as_in_flink(capsys: pytest.CaptureFixture[str]) -> None:
    printed(PrintSink(type_info=Types.TUPLE([Types.STRING(), Types.DOUBLE()])), [("a", 1e10)])
    printed(PrintSink(type_info=Types.ROW([Types.STRING()])), [Row("a")])
    printed(PrintSink(type_info=Types.PICKLED_BYTE_ARRAY()), [("a", 1)])
    assert capsys.readouterr().out == "(a,1.0E10)\n+I[a]\n('a', 1)\n"


def test_several_subtasks_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    printed(PrintSink(), ["x"], parallelism=2, subtask=1)
    printed(PrintSink("mine"), ["x"], parallelism=2, subtask=0)
    printed(PrintSink("mine"), ["x"])
    assert capsys.readouterr().out == "2> x\nmine:1> x\nmine> x\n"


def test_standard_error_can_be_had_instead(capsys: pytest.CaptureFixture[str]) -> None:
    printed(PrintSink(to_err=True), ["x"])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "x\n")


def test_lines_may_come_again_after_a_failure() -> None:
    assert PrintSink().guarantee is DeliveryGuarantee.AT_LEAST_ONCE
