"""JSON Schemas of columns and columns of JSON Schemas."""

import json
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import BuildError
from headrace.formats.messages.format import Mismatch
from headrace.formats.messages.json.schema import check_readable, columns_of, json_schema

COLUMNS = pa.schema(
    [
        ("flag", pa.bool_()),
        ("whole", pa.int64()),
        ("ratio", pa.float64()),
        ("text", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float64()), ("names", pa.list_(pa.string()))])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)


def shape(**properties: Any) -> str:
    return json.dumps({"type": "object", "properties": properties})


def test_columns_come_back_from_their_schema() -> None:
    assert columns_of(json_schema(COLUMNS), "it") == COLUMNS
    check_readable(json_schema(COLUMNS), COLUMNS)


def test_instants_may_be_numbers() -> None:
    found = json.loads(json_schema(COLUMNS, numbers=True))["properties"]
    assert found["at"] == {"type": ["number", "null"]}
    assert found["day"]["format"] == "date"


@pytest.mark.parametrize(
    ("written", "kind", "path", "wrote"),
    [
        ({"type": "string"}, pa.int64(), "x", "string"),
        ({"type": ["boolean", "null"]}, pa.string(), "x", "boolean"),
        ({"anyOf": [{"type": "object"}, {"type": "null"}]}, pa.float64(), "x", "object"),
        ({"type": "array", "items": {"type": "string"}}, pa.list_(pa.bool_()), "x[]", "string"),
        ({"type": "object", "properties": {"y": {"type": "array"}}}, pa.struct([("y", pa.int8())]), "x.y", "array"),
    ],
)  # fmt: skip
def test_what_can_never_be_a_column_names_its_path(
    written: Any, kind: pa.DataType, path: str, wrote: str
) -> None:
    with pytest.raises(Mismatch) as caught:
        check_readable(shape(x=written), pa.schema([("x", kind)]))
    assert (caught.value.path, caught.value.wrote) == (path, wrote)


@pytest.mark.parametrize(
    "written",
    [True, {}, {"$ref": "#/x"}, {"type": "number"}, {"type": ["string", "integer"]}, {"oneOf": [{"$ref": "#/x"}, {"type": "string"}]}],
)  # fmt: skip
def test_what_may_be_a_column_is_read(written: Any) -> None:
    check_readable(shape(x=written), pa.schema([("x", pa.int64()), ("absent", pa.string())]))
    check_readable("true", pa.schema([("x", pa.int64())]))


def test_a_property_without_one_type_needs_a_declared_column() -> None:
    with pytest.raises(BuildError, match=r"property 'p\.x' .*declare schema="):
        columns_of(shape(p={"type": "object", "properties": {"x": {"type": ["string", "integer"]}}}), "it")  # fmt: skip
    with pytest.raises(BuildError, match="it is no JSON Schema of an object"):
        columns_of('{"type": "string"}', "it")
