"""Rows as Python functions see them: attributes, names, equality, and errors that help."""

import copy
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schema import Row, row_class

SCHEMA = pa.schema([("auction", pa.int64()), ("price", pa.float64()), ("count", pa.int64())])
Bid = row_class(SCHEMA)


def test_fields_are_attributes_and_items() -> None:
    row = Bid(7, 1.5, 3)
    assert (row.auction, row.price, row["auction"], row["count"]) == (7, 1.5, 7, 3)


def test_a_field_hides_a_method_of_tuple() -> None:
    assert Bid(7, 1.5, 3).count == 3  # type: ignore[comparison-overlap]


def test_rows_are_made_by_position_by_name_or_unchecked() -> None:
    assert Bid(7, price=1.5, count=3) == Bid(7, 1.5, 3) == Bid._make([7, 1.5, 3])


@pytest.mark.parametrize("values", [(), (1, 2), (1, 2, 3, 4)])
def test_a_row_with_too_few_or_too_many_values_is_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="Row"):
        Bid(*values)


def test_the_class_is_the_same_for_the_same_names() -> None:
    assert row_class(SCHEMA) is row_class(pa.schema(list(SCHEMA)).with_metadata({"a": "b"}))
    assert row_class(SCHEMA) is not row_class(SCHEMA.remove(0))


def test_a_row_shows_its_fields() -> None:
    assert repr(Bid(7, 1.5, 3)) == "Row(auction=7, price=1.5, count=3)"
    assert Bid(7, 1.5, 3)._asdict() == {"auction": 7, "price": 1.5, "count": 3}


def test_an_unknown_attribute_names_the_fields() -> None:
    with pytest.raises(AttributeError) as raised:
        Bid(7, 1.5, 3).prise  # noqa: B018
    assert str(raised.value) == (
        "the row has no field 'prise' (did you mean 'price'?); the fields are auction, price, count"
    )


@pytest.mark.parametrize("name", ["count", "index"])
def test_a_method_of_tuple_is_no_field(name: str) -> None:
    row = row_class(pa.schema([("price", pa.int64())]))(5)
    with pytest.raises(AttributeError, match=f"no field '{name}'; the fields are price"):
        getattr(row, name)


def test_an_unknown_item_names_the_fields() -> None:
    with pytest.raises(KeyError, match="the fields are auction, price, count"):
        Bid(7, 1.5, 3)["prise"]


def test_rows_are_read_only_and_say_how_to_change() -> None:
    row = Bid(7, 1.5, 3)
    with pytest.raises(AttributeError, match=r"row\._replace\(price=\.\.\.\)"):
        row.price = 2.0
    assert row._replace(price=2.0) == Bid(7, 2.0, 3)


def test_replacing_an_unknown_field_is_refused() -> None:
    with pytest.raises(TypeError, match="no field 'cost'"):
        Bid(7, 1.5, 3)._replace(cost=1)


def test_rows_are_equal_when_names_and_values_are() -> None:
    other = row_class(pa.schema([("a", pa.int64()), ("b", pa.float64()), ("c", pa.int64())]))
    assert Bid(7, 1.5, 3) == Bid(7, 1.5, 3)
    assert hash(Bid(7, 1.5, 3)) == hash(Bid(7, 1.5, 3))
    assert Bid(7, 1.5, 3) != Bid(7, 1.5, 4)
    assert Bid(7, 1.5, 3) != other(7, 1.5, 3)
    assert Bid(7, 1.5, 3) != (7, 1.5, 3)


def test_names_that_are_no_attributes_are_items() -> None:
    names = "my-field class _asdict __class__ __qualname__ __pane _0 9 fi \ufb01 _fields".split()
    kind = row_class(pa.schema([(name, pa.int64()) for name in names]))
    row = kind(*range(len(names)))
    assert [row[name] for name in names] == list(range(len(names)))
    assert type(row) is kind
    assert row._asdict() == {name: place for place, name in enumerate(names)}


def test_names_of_the_constructor_s_own_parts_are_ordinary_fields() -> None:
    row = row_class(pa.schema([("_new", pa.int64()), ("_row_type", pa.int64())]))(1, 2)
    assert (row["_new"], row["_row_type"]) == (1, 2)


def test_a_schema_without_fields_has_rows() -> None:
    assert repr(row_class(pa.schema([]))()) == "Row()"


def test_rows_survive_pickling_and_copying() -> None:
    row = Bid(7, 1.5, 3)
    for twin in (pickle.loads(pickle.dumps(row)), copy.copy(row), copy.deepcopy(row)):
        assert twin == row
        assert type(twin) is Bid


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.integers(), max_size=8))
def test_any_names_make_rows(values: dict[str, int]) -> None:
    row = row_class(pa.schema([(name, pa.int64()) for name in values]))(*values.values())
    assert isinstance(row, Row)
    assert row._asdict() == values
    assert all(row[name] == value for name, value in values.items())
