"""Keys: equal ones encode equal, everything else is refused or encodes differently."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from firesteel.common.types import Row
from firesteel.errors import InvalidKeyError
from firesteel.graph.keys import KeyGroups, encode_key, groups_of, subtask_of

NUMBERS = st.one_of(
    st.integers(),
    st.booleans(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.fractions(),
    st.sampled_from(
        [0.5, Decimal("0.5"), Fraction(1, 2), 1, 1.0, True, Decimal(1), -0.0, 0, 10**30, 1e30, Decimal("1e30")]
    ),
)
SCALARS = st.one_of(NUMBERS, st.text(), st.binary(), st.none(), st.dates(), st.datetimes(), st.uuids(), st.timedeltas())
KEYS = st.recursive(
    SCALARS, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)), max_leaves=6
)


@given(KEYS, KEYS)
def test_keys_are_equal_exactly_when_their_encodings_are(one: object, other: object) -> None:
    assert (one == other) == (encode_key(one) == encode_key(other))


@given(NUMBERS, NUMBERS)
def test_numbers_of_different_types_share_an_encoding_exactly_when_they_are_equal(one: object, other: object) -> None:
    assert (one == other) == (encode_key(one) == encode_key(other))


@pytest.mark.parametrize(
    ("key", "encoded"),
    [
        (None, "6e"),
        ("sensor_1", "730000000873656e736f725f31"),
        (b"ab", "62000000026162"),
        (1, "690000000101"),
        (-129, "6900000002ff7f"),
        (0.5, "643fe0000000000000"),
        (("a", 1), "740000000c730000000161690000000101"),
    ],
)
def test_encodings_never_change(key: object, encoded: str) -> None:
    """State written by one version is found by the next: these bytes are for ever."""
    assert encode_key(key).hex() == encoded


def test_the_key_group_of_a_key_never_changes() -> None:
    groups = KeyGroups(128)
    assert [groups[key] for key in ("sensor_1", 42, ("a", 1), None)] == [
        groups.of(k) for k in ("sensor_1", 42.0, ("a", True), None)
    ]
    assert [groups["sensor_1"], groups[42]] == [12, 92]


class Colour(enum.Enum):
    RED = 1


class Size(enum.IntEnum):
    LARGE = 3


@dataclasses.dataclass(frozen=True)
class Account:
    bank: str
    number: int


@dataclasses.dataclass
class MutableAccount:
    number: int


def test_enums_dataclasses_and_rows_are_keys() -> None:
    assert encode_key(Size.LARGE) == encode_key(3)
    assert encode_key(Account("b", 1)) == encode_key(Account("b", 1.0))  # type: ignore[arg-type]
    assert encode_key(Account("b", 1)) != encode_key(("b", 1))
    assert encode_key(Row("a", 1)) == encode_key(Row("a", True))
    assert len({encode_key(Colour.RED), encode_key("RED"), encode_key(1)}) == 3


def test_one_instant_in_two_time_zones_is_one_key() -> None:
    utc = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.timezone.utc)
    other = utc.astimezone(datetime.timezone(datetime.timedelta(hours=5)))
    assert encode_key(utc) == encode_key(other) != encode_key(utc.replace(tzinfo=None))


@pytest.mark.parametrize(
    "key", [float("nan"), Decimal("nan"), ("a", float("nan")), object(), [1], {"a": 1}, 1j, MutableAccount(1)]
)
def test_keys_without_a_canonical_form_are_refused_with_a_way_out(key: object) -> None:
    with pytest.raises(InvalidKeyError, match="cannot be a key") as caught:
        KeyGroups(128).of(key)
    assert "key selector" in str(caught.value)


@given(st.integers(1, 64), st.integers(0, 200))
def test_every_key_group_has_one_owner(parallelism: int, extra: int) -> None:
    maximum = parallelism + extra
    owners = [subtask for subtask in range(parallelism) for _ in groups_of(subtask, parallelism, maximum)]
    assert owners == [subtask_of(group, parallelism, maximum) for group in range(maximum)]


def test_remembered_groups_do_not_grow_without_bound() -> None:
    groups = KeyGroups(128, capacity=100)
    for number in range(1000):
        assert groups.of(number) == KeyGroups(128).of(number)
    assert len(groups) <= 100


def test_uuids_are_keys() -> None:
    assert encode_key(uuid.UUID(int=1)) != encode_key(uuid.UUID(int=2))


@given(st.text())
def test_the_short_way_for_strings_leads_to_the_same_group(key: str) -> None:
    assert KeyGroups(1 << 30)[key] == xxh3_64_intdigest(encode_key(key)) % (1 << 30)
