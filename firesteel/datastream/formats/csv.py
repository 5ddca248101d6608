"""CSV files."""

from firesteel.connectors.file_csv import CsvReaderFormat
from firesteel.connectors.file_csv_writing import CsvBulkWriters, CsvSchema, CsvSchemaBuilder

__all__ = ["CsvBulkWriters", "CsvReaderFormat", "CsvSchema", "CsvSchemaBuilder"]
