"""CSV files and CSV messages."""

from firesteel.connectors.file_csv import CsvReaderFormat
from firesteel.connectors.file_csv_writing import CsvBulkWriters, CsvSchema, CsvSchemaBuilder
from firesteel.connectors.message_csv import CsvRowDeserializationSchema, CsvRowSerializationSchema

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]
