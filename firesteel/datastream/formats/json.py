"""JSON lines and JSON messages."""

from firesteel.connectors.file_json_writing import JsonLinesBulkWriters
from firesteel.connectors.file_lines import JsonLinesFormat
from firesteel.connectors.message_json import JsonRowDeserializationSchema, JsonRowSerializationSchema

__all__ = ["JsonLinesBulkWriters", "JsonLinesFormat", "JsonRowDeserializationSchema", "JsonRowSerializationSchema"]
