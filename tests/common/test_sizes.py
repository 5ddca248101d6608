from __future__ import annotations

import pytest

from firesteel.common.sizes import parse_size, show_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("64 mb", 64 << 20),
        ("64mb", 64 << 20),
        ("1g", 1 << 30),
        ("2 GiB", 2 << 30),
        (" 3 kibibytes ", 3 << 10),
        ("1t", 1 << 40),
        ("7 bytes", 7),
    ],
)
def test_sizes_are_read_as_flink_reads_them(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "mb", "-1 mb", "1.5 gb", "64 mbit", "64 mb 3"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="Not a size"):
        parse_size(text)


def test_sizes_are_shown_in_the_largest_unit_that_fits():
    assert [show_size(size) for size in (0, 1023, 1536, 5 << 20, 3 << 40, 5 << 50)] == [
        "0 B", "1023 B", "1.5 KB", "5.0 MB", "3.0 TB", "5120.0 TB",
    ]  # fmt: skip
