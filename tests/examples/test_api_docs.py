"""docs/api.md is what the code says, and the code says what its names do not."""

from __future__ import annotations

import re

import pytest

from docs.build_api import MODULES, TARGET, build, doc_of, members, public_classes

PUBLIC = public_classes()

PLAIN = re.compile(r"(get|set|is|has|of|to|enable|disable|create)_")
"""Names that say it all."""

PLAIN_CLASSES = {"Configuration", "Duration", "Time", "Types"}
"""Classes whose methods are a list of such names."""

UNDESCRIBED = {
    "ByteArraySchema": "serialize",
    "CheckpointConfig": "settings",
    "CompletableFuture": "cancelled",
    "ConfigOptions": "key",
    "Counter": "inc dec",
    "DataStream": "force_non_parallel",
    "Distribution": "update",
    "Encoder": "encode",
    "FileSink": "for_row_format",
    "FileSource": "for_record_stream_format for_bulk_file_format",
    "FileSourceBuilder": "build",
    "FunctionHarness": "output_with_timestamps side_output_with_timestamps",
    "GeneratorFunction": "map",
    "Meter": "mark_event",
    "MetricGroup": "counter meter distribution",
    "OutputFileConfig": "builder",
    "RateLimiterStrategy": "no_op",
    "RestartStrategies": "no_restart fall_back_restart fixed_delay_restart failure_rate_restart exponential_delay_restart",
    "SerializationSchema": "serialize",
    "SimpleStringSchema": "serialize",
    "SlotSharingGroup": "builder",
    "StreamExecutionEnvironment": "add_python_archive",
    "StreamingFileSink": "for_row_format for_bulk_format",
    "TimerService": "current_processing_time",
    "TypeSerializer": "serialize deserialize",
}
"""Methods still without a docstring. What gets one is taken out here; nothing is added."""


def test_the_api_document_is_up_to_date() -> None:
    assert TARGET.read_text() == build(), "run: python docs/build_api.py"


@pytest.mark.parametrize("module", MODULES)
def test_public_classes_say_what_they_are(module: str) -> None:
    undescribed = {
        kind.__name__ for kind, home in PUBLIC.items() if home == module and not (kind.__doc__ or "").strip()
    }
    assert undescribed == set()


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_public_methods_say_what_they_do_unless_their_name_does(kind: type) -> None:
    if kind.__name__ in PLAIN_CLASSES:
        return
    undescribed = {
        name for name, _ in members(kind, PUBLIC) if not PLAIN.match(name) and not doc_of(kind, name).strip()
    }
    assert undescribed <= set(UNDESCRIBED.get(kind.__name__, "").split())
