"""PyFlink's home of the environment."""

from firesteel.datastream.environment import StreamExecutionEnvironment

__all__ = ["StreamExecutionEnvironment"]
