"""Firesteel: Apache Flink's stateful streaming model for Python, with Spark scheduling the work and moving the data."""

__version__ = "0.1.0"
