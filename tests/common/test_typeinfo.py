import pickle

import pytest

from firesteel.common.typeinfo import ListTypeInfo, RowTypeInfo, TupleTypeInfo, Types

T = Types


def test_types_are_equal_by_value_and_hashable():
    assert T.TUPLE([T.STRING(), T.LIST(T.INT())]) == T.TUPLE((T.STRING(), T.LIST(T.INT())))
    assert len({T.INT(), T.INT(), T.LONG(), T.SQL_DATE(), T.SQL_TIME(), T.SQL_DATE()}) == 4
    assert T.LIST(T.INT()) != T.OBJECT_ARRAY(T.INT())


def test_row_types_are_equal_whatever_their_names():
    named = T.ROW_NAMED(["a"], [T.INT()])
    assert named == T.ROW([T.INT()])
    assert hash(named) == hash(T.ROW([T.INT()]))


def test_types_cannot_be_changed():
    with pytest.raises(AttributeError):
        T.ROW([T.INT()]).field_types = ()


def test_types_can_be_pickled():
    declared = T.ROW_NAMED(["a", "b"], [T.MAP(T.STRING(), T.BIG_DEC()), T.PICKLED_BYTE_ARRAY()])
    assert repr(pickle.loads(pickle.dumps(declared))) == repr(declared)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (T.INT(), "Integer"),
        (T.BIG_DEC(), "BigDecimal"),
        (T.SQL_TIMESTAMP(), "TimestampTypeInfo"),
        (T.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo"),
        (T.ROW([T.STRING(), T.INT()]), "RowTypeInfo(String, Integer)"),
        (T.ROW_NAMED(["a"], [T.STRING()]), "RowTypeInfo(a: String)"),
        (T.TUPLE([T.STRING(), T.DOUBLE()]), "TupleTypeInfo(String, Double)"),
        (T.MAP(T.STRING(), T.LONG()), "MapTypeInfo<String, Long>"),
        (T.LIST(T.CHAR()), "ListTypeInfo<Char>"),
        (T.PRIMITIVE_ARRAY(T.BYTE()), "PrimitiveArrayTypeInfo<Byte>"),
        (T.BASIC_ARRAY(T.STRING()), "BasicArrayTypeInfo<String>"),
        (T.OBJECT_ARRAY(T.INSTANT()), "ObjectArrayTypeInfo<Instant>"),
    ],
    ids=str,
)
def test_repr_is_pyflinks(declared, text):
    assert repr(declared) == text


def test_rows_without_names_have_flinks_default_names():
    unnamed = T.ROW([T.INT(), T.STRING()])
    assert unnamed.get_field_names() == ["f0", "f1"]
    assert unnamed.get_field_index("f1") == -1
    assert T.ROW_NAMED(["a", "b"], [T.INT(), T.STRING()]).get_field_index("b") == 1


def test_field_and_element_types_are_given_back():
    assert isinstance(T.ROW([T.INT()]), RowTypeInfo)
    assert isinstance(T.TUPLE([T.INT()]), TupleTypeInfo)
    assert T.ROW([T.INT()]).get_field_types() == T.TUPLE([T.INT()]).get_field_types() == [T.INT()]
    assert ListTypeInfo(T.INT()).elem_type == T.INT()


@pytest.mark.parametrize(
    "declared",
    [
        T.STRING(),
        T.BIG_INT(),
        T.CHAR(),
        T.BOOLEAN(),
        T.PRIMITIVE_ARRAY(T.BYTE()),
        T.TUPLE([T.STRING(), T.LIST(T.DOUBLE())]),
        T.MAP(T.STRING(), T.TUPLE([T.INT()])),
    ],
    ids=str,
)
def test_builtin_values_in_builtin_containers_are_plain(declared):
    assert declared.is_plain()


@pytest.mark.parametrize(
    "declared",
    [
        T.PICKLED_BYTE_ARRAY(),
        T.ROW([T.INT()]),
        T.BIG_DEC(),
        T.INSTANT(),
        T.SQL_DATE(),
        T.SQL_TIME(),
        T.SQL_TIMESTAMP(),
        T.TUPLE([T.INT(), T.ROW([T.INT()])]),
        T.LIST(T.BIG_DEC()),
        T.MAP(T.STRING(), T.PICKLED_BYTE_ARRAY()),
    ],
    ids=str,
)
def test_values_of_classes_are_not_plain_however_deep(declared):
    assert not declared.is_plain()


def test_forgotten_parentheses_are_named():
    with pytest.raises(TypeError, match=r"write Types\.STRING\(\) with parentheses"):
        T.ROW([T.STRING, T.INT()])
    with pytest.raises(TypeError, match="not <class 'int'>"):
        T.LIST(int)


def test_arrays_refuse_elements_that_they_cannot_have():
    with pytest.raises(TypeError, match="cannot have elements of type String"):
        T.PRIMITIVE_ARRAY(T.STRING())
    with pytest.raises(TypeError, match="BasicArrayTypeInfo cannot have elements of type BigDecimal"):
        T.BASIC_ARRAY(T.BIG_DEC())


def test_row_names_must_fit_the_types():
    with pytest.raises(ValueError, match="1 field types, but 2 field names"):
        T.ROW_NAMED(["a", "b"], [T.INT()])
    with pytest.raises(ValueError, match="a field name twice"):
        T.ROW_NAMED(["a", "a"], [T.INT(), T.INT()])
