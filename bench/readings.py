"""Generated sensor readings that both sides of a comparison can compute from a record's number."""

KEY_FACTOR = 2_654_435_761
TEMP_FACTOR = 40_503


def reading(number: int, keys: int) -> tuple[str, float]:
    """Keys are spread like random ones; temperatures are between 20 and 100."""
    return f"sensor_{number * KEY_FACTOR % keys}", 20 + number * TEMP_FACTOR % 1000 * 0.08
