"""Metrics of user code: PyFlink's names, and their collection from the slots of a job."""

from firesteel.metrics.collection import SlotMetrics, Snapshot, merge
from firesteel.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = [
    "Counter",
    "Distribution",
    "Meter",
    "Metric",
    "MetricGroup",
    "SlotMetrics",
    "Snapshot",
    "merge",
]
