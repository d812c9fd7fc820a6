"""Schemas come from what users write, and errors name what there is."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Literal, NewType, NotRequired, Optional, TypedDict

import pyarrow as pa
import pytest

from headrace.errors import SchemaError
from headrace.schema import arrow_type, as_schema, require_field, return_schema, return_type

UserId = NewType("UserId", int)


@dataclass
class Point:
    x: int
    y: float | None


@dataclass
class Order:
    id: UserId
    at: datetime
    tags: list[str]
    where: Point


class Line(TypedDict):
    item: str
    amount: NotRequired[int]


BIDS = pa.schema([("auction", pa.int64()), ("price", pa.float64())])


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (int, pa.int64()),
        (float, pa.float64()),
        (str, pa.string()),
        (bytes, pa.binary()),
        (bool, pa.bool_()),
        (datetime, pa.timestamp("us", tz="UTC")),
        (date, pa.date32()),
        (timedelta, pa.duration("us")),
        (Decimal, pa.decimal128(38, 18)),
        (list[int], pa.list_(pa.int64())),
        (tuple[str, ...], pa.list_(pa.string())),
        (dict[str, list[int]], pa.map_(pa.string(), pa.list_(pa.int64()))),
        (Optional[int], pa.int64()),  # noqa: UP045 - users write it so
        (int | None, pa.int64()),
        (UserId, pa.int64()),
        (Literal["a", "b"], pa.string()),
        (Annotated[int, pa.int32()], pa.int32()),
        (Annotated[int, "cents"], pa.int64()),
        (pa.uint8(), pa.uint8()),
        (Point, pa.struct([("x", pa.int64()), ("y", pa.float64())])),
    ],
)
def test_an_annotation_has_an_arrow_type(annotation: Any, expected: pa.DataType) -> None:
    assert arrow_type(annotation) == expected


@pytest.mark.parametrize(
    "annotation", [int | str, set[int], object, tuple[int, str], Literal["a", 1], list, 5, [int]]
)
def test_an_annotation_without_an_arrow_type_is_refused(annotation: Any) -> None:
    with pytest.raises(SchemaError, match="not a type that a column can have; use int, float"):
        arrow_type(annotation)


def test_a_dataclass_is_a_schema() -> None:
    schema = as_schema(Order)
    assert schema.names == ["id", "at", "tags", "where"]
    assert schema.field("where").type == arrow_type(Point)


def test_a_typed_dict_is_a_schema() -> None:
    assert as_schema(Line) == pa.schema([("item", pa.string()), ("amount", pa.int64())])


def test_a_mapping_of_names_to_types_is_a_schema() -> None:
    assert as_schema({"auction": int, "price": pa.float64()}) == BIDS


def test_an_arrow_schema_is_itself_without_metadata() -> None:
    assert as_schema(BIDS.with_metadata({"pandas": "x"})).equals(BIDS, check_metadata=True)


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.raises(SchemaError, match="more than one field named 'a'"):
        as_schema(pa.schema([("a", pa.int64()), ("a", pa.string())]))


def test_an_instance_is_refused_with_a_hint() -> None:
    with pytest.raises(SchemaError, match="pass the class, not an instance"):
        as_schema(Point(1, 2.0))


@pytest.mark.parametrize("declaration", [int, "price", None, [("a", int)]])
def test_what_declares_no_schema_is_refused(declaration: Any) -> None:
    with pytest.raises(SchemaError, match="does not declare a schema; use a dataclass"):
        as_schema(declaration)


def test_a_field_of_an_unknown_type_is_named_with_its_class() -> None:
    @dataclass
    class Broken:
        price: complex

    with pytest.raises(SchemaError, match="Field 'price' of Broken: complex is not a type"):
        as_schema(Broken)


def test_an_annotation_that_cannot_be_resolved_is_refused() -> None:
    @dataclass
    class Broken:
        price: "Nowhere"  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match=r"Broken cannot be resolved: name 'Nowhere'"):
        as_schema(Broken)


def test_a_missing_field_is_named_with_the_fields_there_are() -> None:
    with pytest.raises(SchemaError) as raised:
        require_field(BIDS, "prise", what="key_by")
    assert str(raised.value) == (
        "key_by: there is no field 'prise' (did you mean 'price'?)."
        " The fields are auction (int64), price (double)."
    )


def test_a_field_that_exists_is_returned() -> None:
    assert require_field(BIDS, "price", what="key_by").type == pa.float64()


def to_point(row: Any) -> Point:
    raise NotImplementedError


def points(row: Any) -> Iterator[Point]:
    raise NotImplementedError


def to_text(row: Any) -> str:
    raise NotImplementedError


def perhaps(row: Any) -> Point | None:
    raise NotImplementedError


def nothing(row: Any) -> None:
    raise NotImplementedError


class Converter:
    def __call__(self, row: Any) -> Point:
        raise NotImplementedError

    def convert(self, row: Any) -> Line:
        raise NotImplementedError


@pytest.mark.parametrize("function", [to_point, partial(to_point), Converter(), Point])
def test_a_return_annotation_declares_columns(function: Any) -> None:
    assert return_schema(function) == as_schema(Point)


def test_a_method_may_declare_a_typed_dict() -> None:
    assert return_schema(Converter().convert) == as_schema(Line)


@pytest.mark.parametrize(
    "shape", [Iterator[Point], Iterable[Point], list[Point], tuple[Point, ...]]
)
def test_several_rows_are_unwrapped(shape: Any) -> None:
    def function(row: Any) -> Any: ...

    function.__annotations__["return"] = shape
    assert return_schema(function, many=True) == as_schema(Point)


def test_a_generator_yields_rows() -> None:
    def function(row: Any) -> Generator[int, None, None]:
        yield 1

    assert return_schema(function, many=True) is None
    assert return_type(function, many=True) == pa.int64()


def test_a_scalar_annotation_is_a_type_and_no_schema() -> None:
    assert return_schema(to_text) is None
    assert return_type(to_text) == pa.string()
    assert return_type(str) == pa.string()


@pytest.mark.parametrize("shape", [Any, dict, dict[str, Any], Mapping[str, Any], object])
def test_a_vague_annotation_declares_nothing(shape: Any) -> None:
    def function(row: Any) -> Any: ...

    function.__annotations__["return"] = shape
    assert return_schema(function) is None
    assert return_type(function) is None


@pytest.mark.parametrize("function", [lambda row: row, len, partial(max, 1)])
def test_a_function_without_annotation_declares_nothing(function: Any) -> None:
    assert return_schema(function) is None
    assert return_type(function) is None


def test_a_row_that_may_be_none_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"perhaps says that it returns .*use flat_map"):
        return_schema(perhaps)


def test_a_function_that_returns_none_is_refused() -> None:
    with pytest.raises(SchemaError, match="nothing says that it returns None"):
        return_schema(nothing)


def test_several_rows_need_an_annotation_of_several() -> None:
    with pytest.raises(
        SchemaError, match=r"to_point says that it returns Point, .* write Iterator"
    ):
        return_schema(to_point, many=True)
    assert return_schema(points, many=True) == as_schema(Point)
