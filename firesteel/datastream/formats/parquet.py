"""Parquet files."""

from firesteel.connectors.file_parquet import ParquetColumnarRowInputFormat
from firesteel.connectors.file_parquet_writing import ParquetBulkWriters

__all__ = ["ParquetBulkWriters", "ParquetColumnarRowInputFormat"]
