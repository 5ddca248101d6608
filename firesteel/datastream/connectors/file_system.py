"""PyFlink's home of the file source and sink, and the formats they read."""

from firesteel.connectors.file_csv import CsvReaderFormat
from firesteel.connectors.file_formats import BulkFormat, FileFormat, FileReader, FileReadError, StreamFormat
from firesteel.connectors.file_lines import JsonLinesFormat
from firesteel.connectors.file_parquet import ParquetColumnarRowInputFormat
from firesteel.connectors.file_sink import FileSink
from firesteel.connectors.file_sink_config import OutputFileConfig, RollingPolicy
from firesteel.connectors.file_source import FileSource, FileSourceBuilder

__all__ = [
    "BulkFormat",
    "CsvReaderFormat",
    "FileFormat",
    "FileReadError",
    "FileReader",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "JsonLinesFormat",
    "OutputFileConfig",
    "ParquetColumnarRowInputFormat",
    "RollingPolicy",
    "StreamFormat",
]
