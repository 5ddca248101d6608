"""PyFlink's home of the JDBC sink."""

from firesteel.connectors.jdbc_options import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcExecutionOptions
from firesteel.connectors.jdbc_sink import JdbcSink

__all__ = ["JdbcConnectionOptions", "JdbcExactlyOnceOptions", "JdbcExecutionOptions", "JdbcSink"]
