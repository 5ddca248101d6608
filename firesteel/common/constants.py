"""The bounds of Flink's timestamps and watermarks, which are longs of Java's."""

MAX_LONG_VALUE = (1 << 63) - 1
MIN_LONG_VALUE = -(1 << 63)
