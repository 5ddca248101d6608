import copy
import pickle

import pytest

from firesteel.common import ConfigOptions, Configuration


def test_every_getter_reads_text():
    configuration = Configuration.from_dict({"i": "4", "b": "TRUE", "f": "1.5"})
    assert configuration.get_integer("i", 0) == 4
    assert configuration.get_boolean("b", False) is True
    assert configuration.get_float("f", 0.0) == 1.5


def test_typed_values_read_as_text_and_keep_their_type():
    configuration = Configuration().set_integer("i", 4).set_boolean("b", True).set_float("f", 1.5)
    assert configuration.get_string("b", "") == "true"
    assert configuration.to_dict() == {"i": "4", "b": "true", "f": "1.5"}
    target: dict[str, object] = {"x": 0}
    configuration.add_all_to_dict(target)
    assert target == {"x": 0, "i": 4, "b": True, "f": 1.5}


def test_missing_keys_give_the_default_even_if_that_is_none():
    assert Configuration().get_integer("i", 3) == 3
    assert Configuration().get_string("s", None) is None


@pytest.mark.parametrize("getter", ["get_integer", "get_boolean", "get_float"])
def test_an_unreadable_value_is_an_error_and_not_the_default(getter):
    configuration = Configuration().set_string("k", "yes")
    with pytest.raises(ValueError, match="Could not parse value 'yes' for key 'k'"):
        getattr(configuration, getter)("k", None)


def test_none_is_not_a_value():
    with pytest.raises(TypeError, match="'k' must be a str"):
        Configuration().set_string("k", None)


def test_bytes_come_back():
    assert Configuration().set_bytearray("k", bytearray(b"\xff\x00")).get_bytearray("k", None) == b"\xff\x00"


def test_keys_can_be_listed_removed_and_added_with_a_prefix():
    configuration = Configuration.from_dict({"a": "1"})
    configuration.add_all(Configuration.from_dict({"b": "2"}), "p.")
    assert configuration.key_set() == {"a", "p.b"}
    assert configuration.contains_key("p.b")
    assert configuration.remove_config("a")
    assert not configuration.remove_config("a")
    assert str(configuration) == "{p.b=2}"


def test_copies_are_equal_and_independent():
    original = Configuration.from_dict({"a": "1"})
    for duplicate in (Configuration(original), copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert duplicate == original
        assert hash(duplicate) == hash(original)
        duplicate.set_string("a", "2")
        assert original.get_string("a", None) == "1"


def test_lists_are_written_with_semicolons_or_brackets():
    assert Configuration.parse_list_value("a;b") == ["a", "b"]
    assert Configuration.parse_list_value("[a, 'b']") == ["a", "b"]
    assert Configuration.parse_list_value("") == []


def test_options_carry_key_type_and_default():
    workers = ConfigOptions.key("workers").int_type().default_value(2)
    name = ConfigOptions.key("name").string_type().no_default_value()
    configuration = Configuration()
    assert configuration.get(workers) == 2
    assert configuration.get(workers, 5) == 5
    assert configuration.get(name) is None
    assert configuration.set(workers, 7).get(workers) == 7
    assert Configuration.from_dict({"workers": "9"}).get(workers) == 9
