from __future__ import annotations

import firesteel.datastream.connectors as connectors
from firesteel.common import Encoder
from firesteel.connectors import base
from firesteel.datastream.connectors.base import DeliveryGuarantee, Sink, Source


def test_public_sources_and_sinks_are_the_ones_the_engine_knows() -> None:
    assert Source is base.Source
    assert Sink is base.Sink
    assert issubclass(connectors.FileSource, Source)
    assert issubclass(connectors.NumberSequenceSource, Source)
    assert issubclass(connectors.FileSink, Sink)


def test_pyflinks_delivery_guarantees_exist() -> None:
    assert [guarantee.name for guarantee in DeliveryGuarantee] == ["EXACTLY_ONCE", "AT_LEAST_ONCE", "NONE"]


def test_what_users_need_for_their_own_connectors_is_public() -> None:
    from firesteel.datastream.connectors import base as public

    assert all(hasattr(base, name) for name in public.__all__ if name != "DeliveryGuarantee")


def test_a_sink_with_a_committer_is_exactly_once_and_others_at_least_once() -> None:
    class Plain(Sink):
        def create_writer(self, context: base.WriterContext) -> base.SinkWriter:
            raise NotImplementedError

    class Transactional(Plain):
        def create_committer(self, context: base.CommitterContext) -> base.Committer:
            raise NotImplementedError

    assert Plain().guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert Transactional().guarantee is DeliveryGuarantee.EXACTLY_ONCE
    encoder = Encoder.simple_string_encoder()
    assert connectors.FileSink.for_row_format("/x", encoder).build().guarantee is DeliveryGuarantee.EXACTLY_ONCE


def test_file_formats_are_where_pyflink_has_them() -> None:
    from firesteel.datastream.connectors import file_system
    from firesteel.datastream.formats import csv, json, parquet

    assert csv.CsvBulkWriters is file_system.CsvBulkWriters
    assert json.JsonLinesBulkWriters is file_system.JsonLinesBulkWriters
    assert parquet.ParquetBulkWriters is file_system.ParquetBulkWriters


def test_built_in_sources_can_be_read_again() -> None:
    assert connectors.FileSource.replayable
    assert connectors.NumberSequenceSource.replayable
    assert connectors.DataGeneratorSource.replayable
    assert not connectors.SocketSource.replayable
