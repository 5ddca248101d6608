"""JSON lines."""

from firesteel.connectors.file_json_writing import JsonLinesBulkWriters
from firesteel.connectors.file_lines import JsonLinesFormat

__all__ = ["JsonLinesBulkWriters", "JsonLinesFormat"]
