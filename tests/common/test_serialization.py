import pickle

import pytest

from firesteel.common import ByteArraySchema, Encoder, Row, SimpleStringSchema, Types
from firesteel.common.serialization import RowFieldExtractorSchema


def test_the_simple_encoder_writes_str_and_a_newline():
    encoder = pickle.loads(pickle.dumps(Encoder.simple_string_encoder()))
    assert encoder.encode(("ä", 1)) == "('ä', 1)\n".encode()
    assert Encoder.simple_string_encoder("ISO-8859-1").encode("ä") == b"\xe4\n"


def test_an_unknown_charset_is_refused_before_anything_runs():
    with pytest.raises(LookupError):
        Encoder.simple_string_encoder("UTF-99")
    with pytest.raises(LookupError):
        SimpleStringSchema("UTF-99")


def test_strings_go_out_and_come_back():
    schema = SimpleStringSchema()
    assert schema.deserialize(schema.serialize("ä")) == "ä"
    assert schema.get_produced_type() == Types.STRING()
    assert not schema.is_end_of_stream("ä")
    assert schema.deserialize(b"\xff") == "\ufffd"


def test_schemas_refuse_what_they_cannot_write():
    with pytest.raises(TypeError, match="SimpleStringSchema writes strings, not 1"):
        SimpleStringSchema().serialize(1)
    with pytest.raises(TypeError, match="ByteArraySchema writes bytes, not 'a'"):
        ByteArraySchema().serialize("a")


def test_bytes_pass_unchanged():
    assert ByteArraySchema().deserialize(ByteArraySchema().serialize(bytearray(b"a"))) == b"a"


def test_one_field_of_a_row_can_be_the_message():
    schema = RowFieldExtractorSchema(1)
    assert schema.serialize(Row("k", b"v")) == b"v"
    with pytest.raises(TypeError, match="needs bytes in field 1, not 'v'"):
        schema.serialize(Row("k", "v"))
    with pytest.raises(ValueError, match="negative"):
        RowFieldExtractorSchema(-1)
