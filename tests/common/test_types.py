import copy
import pickle

import pytest

from firesteel.common import Row, RowKind


def test_fields_are_read_by_position_name_and_attribute():
    row = Row(city="Oslo", n=3)
    assert (row[0], row["n"], row.city, row[-1]) == ("Oslo", 3, "Oslo", 3)
    assert list(row) == ["Oslo", 3]
    assert len(row) == 2
    assert row[0:1] == ["Oslo"]


def test_fields_are_written_by_position_and_name_but_not_by_attribute():
    row = Row(city="Oslo", n=3)
    row[0] = "Bergen"
    row["n"] = 4
    assert row == Row(city="Bergen", n=4)
    with pytest.raises(AttributeError):
        row.city = "Oslo"


def test_a_row_of_names_is_a_template():
    city = Row("city", "n")
    assert city("Oslo", 3) == Row(city="Oslo", n=3)
    assert "city" in city
    with pytest.raises(ValueError, match="cannot take 3 values"):
        city("Oslo", 3, 4)


def test_changing_a_template_leaves_its_rows_alone():
    template = Row("a", "b")
    row = template(1, 2)
    template[0] = "z"
    assert row.a == 1


def test_contains_looks_at_names_if_there_are_any_else_at_values():
    assert "city" in Row(city="Oslo")
    assert "Oslo" not in Row(city="Oslo")
    assert "Oslo" in Row("Oslo")


def test_positional_and_named_values_do_not_mix():
    with pytest.raises(ValueError, match="not both"):
        Row(1, a=2)


def test_repr_is_pyflinks():
    assert repr(Row(city="Oslo", n=None)) == "Row(city='Oslo', n=None)"
    assert str(Row("Oslo", Row(n=1))) == "<Row('Oslo', Row(n=1))>"


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"No field 'x' in a Row with the fields \['city'\]"):
        Row(city="Oslo")["x"]
    with pytest.raises(KeyError, match="no field names"):
        Row("Oslo")["city"]
    with pytest.raises(AttributeError):
        _ = Row("Oslo").city


def test_named_rows_are_equal_and_hash_equal_whatever_the_order_of_names():
    one, other = Row(a=1, b=2), Row(b=2, a=1)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Row(a=1, c=2)


def test_kind_and_names_count_in_equality():
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert Row(1) != Row(a=1)
    assert Row(1) != (1,)


def test_as_dict_goes_into_nested_rows_only_when_asked():
    row = Row(a=1, b=[Row(c=2)], d={"e": Row(f=3)})
    assert row.as_dict()["b"] == [Row(c=2)]
    assert row.as_dict(True) == {"a": 1, "b": [{"c": 2}], "d": {"e": {"f": 3}}}
    with pytest.raises(TypeError, match="without field names"):
        Row(1).as_dict()


def test_fields_come_in_the_order_of_the_names_asked_for():
    row = Row(a=1, b=2)
    assert row.get_fields_by_names(["b", "a"]) == [2, 1]
    row.set_field_names(["x", "y"])
    assert row.x == 1


@pytest.mark.parametrize(
    "row", [Row(), Row("a", None), Row(a=1, b=Row(2)), Row.of_kind(RowKind.UPDATE_AFTER, a=1)], ids=str
)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickling_keeps_names_values_and_kind(row, protocol):
    restored = pickle.loads(pickle.dumps(row, protocol))
    assert restored == row
    assert repr(restored) == repr(row)


def test_copies_do_not_share_values():
    row = Row(a=[1])
    shallow, deep = copy.copy(row), copy.deepcopy(row)
    row["a"].append(2)
    row["a"] = None
    assert (shallow.a, deep.a) == ([1, 2], [1])


def test_kinds_show_as_signs():
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
