"""PyFlink's home of the number sequence."""

from firesteel.connectors.number_seq import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
