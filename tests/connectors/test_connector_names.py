from __future__ import annotations

import firesteel.datastream.connectors as connectors
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
