"""Records made from numbers."""

from firesteel.connectors.datagen import DataGeneratorSource, GeneratorFunction, RateLimiterStrategy

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiterStrategy"]
