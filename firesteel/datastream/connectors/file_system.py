"""PyFlink's home of the file source and sink, and the formats they read and write."""

from firesteel.connectors.file_bulk import BulkWriter, BulkWriterFactory
from firesteel.connectors.file_csv import CsvReaderFormat
from firesteel.connectors.file_csv_writing import CsvBulkWriters, CsvSchema
from firesteel.connectors.file_formats import BulkFormat, FileFormat, FileReader, FileReadError, StreamFormat
from firesteel.connectors.file_json_writing import JsonLinesBulkWriters
from firesteel.connectors.file_lines import JsonLinesFormat
from firesteel.connectors.file_parquet import ParquetColumnarRowInputFormat
from firesteel.connectors.file_parquet_writing import ParquetBulkWriters
from firesteel.connectors.file_sink import FileSink, StreamingFileSink
from firesteel.connectors.file_sink_buckets import BasePathBucketAssigner, BucketAssigner, DateTimeBucketAssigner
from firesteel.connectors.file_sink_config import FileCompactor, FileCompactStrategy, OutputFileConfig
from firesteel.connectors.file_sink_rolling import (
    DefaultRollingPolicy,
    OnCheckpointRollingPolicy,
    PartFileInfo,
    RollingPolicy,
)
from firesteel.connectors.file_source import FileSource, FileSourceBuilder

__all__ = [
    "BasePathBucketAssigner",
    "BucketAssigner",
    "BulkFormat",
    "BulkWriter",
    "BulkWriterFactory",
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvSchema",
    "DateTimeBucketAssigner",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileFormat",
    "FileReadError",
    "FileReader",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "JsonLinesBulkWriters",
    "JsonLinesFormat",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
    "PartFileInfo",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]
