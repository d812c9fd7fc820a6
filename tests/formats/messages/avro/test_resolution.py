"""One schema written, another read: as fastavro resolves them, and what is refused by its field."""

import io
import json
from datetime import date
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headrace.formats.messages.avro.reader import AvroReader
from headrace.formats.messages.avro.schema import parsed
from headrace.formats.messages.avro.types import arrow_schema
from headrace.formats.messages.format import Mismatch
from headrace.formats.messages.packed import packed


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def message(schema: Any, row: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    return out.getvalue()


def read(writer: Any, reader: Any, message: bytes) -> Any:
    tree = parsed(reader)
    columns = pa.struct(list(arrow_schema(tree)))
    rows, _, bad = AvroReader(json.dumps(writer), columns, reader=tree).read(packed([message]))
    assert bad == []
    return rows.to_pylist()[0]


TEXTS = {"type": "array", "items": "string"}
CASES = {
    "added with default": (record(field("a", "int")), record(field("a", "int"), field("b", "string", default="x")), {"a": 1}),
    "default of a list": (record(field("a", "int")), record(field("b", {"type": "array", "items": "string"}, default=["x"])), {"a": 1}),
    "default before null": (record(field("a", "int")), record(field("b", ["int", "null"], default=7)), {"a": 1}),
    "removed": (record(field("a", "int"), field("b", "string")), record(field("a", "int")), {"a": 1, "b": "gone"}),
    "reordered": (record(field("a", "int"), field("b", "string")), record(field("b", "string"), field("a", "int")), {"a": 1, "b": "x"}),
    "int to long": (record(field("a", "int")), record(field("a", "long")), {"a": -7}),
    "long to double": (record(field("a", "long")), record(field("a", "double")), {"a": 2**53 + 1}),
    "float to double": (record(field("a", "float")), record(field("a", "double")), {"a": 0.1}),
    "bytes to string": (record(field("a", "bytes")), record(field("a", "string")), {"a": b"text"}),
    "string to bytes": (record(field("a", "string")), record(field("a", "bytes")), {"a": "text"}),
    "alias": (record(field("old", "int")), record(field("new", "int", aliases=["older", "old"])), {"old": 3}),
    "now nullable": (record(field("a", "int")), record(field("a", ["null", "int"])), {"a": 3}),
    "null last": (record(field("a", ["int", "null"])), record(field("a", ["null", "int"])), {"a": None}),
    "removed list": (record(field("l", TEXTS), field("a", "int")), record(field("a", "int")), {"l": ["x"], "a": 3}),
    "inside a list": (
        record(field("l", {"type": "array", "items": record(field("x", "int")) | {"name": "I"}})),
        record(field("l", {"type": "array", "items": record(field("y", "int", default=9), field("x", "long")) | {"name": "I"}})),
        {"l": [{"x": 1}, {"x": 2}]},
    ),
    "inside a record": (
        record(field("p", ["null", record(field("x", "int"), field("gone", "string")) | {"name": "I"}])),
        record(field("p", ["null", record(field("x", "double")) | {"name": "I"}])),
        {"p": {"x": 1, "gone": "g"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_resolution_is_that_of_fastavro(case: tuple[Any, Any, Any]) -> None:
    writer, reader, row = case
    content = message(writer, row)
    expected = fastavro.schemaless_reader(io.BytesIO(content), writer, reader)
    assert read(writer, reader, content) == expected


def test_an_alias_does_not_take_a_field_that_the_reader_has() -> None:
    reader = record(
        field("new", ["null", "int"], default=None, aliases=["old"]), field("old", "int")
    )
    assert read(record(field("old", "int")), reader, b"\x06") == {"new": None, "old": 3}


INSTANT = {"type": "long", "logicalType": "timestamp-micros"}


@pytest.mark.parametrize(
    ("wrote", "reads", "path", "told"),
    [
        ("string", pa.float64(), "x", "string"),
        ("double", pa.int64(), "x", "double"),
        ("long", pa.int32(), "x", "long"),
        ("long", pa.timestamp("us", "UTC"), "x", "long"),
        (INSTANT, pa.date32(), "x", "timestamp-micros"),
        (["null", "int", "string"], pa.string(), "x", "union of null, int, string"),
        (TEXTS, pa.list_(pa.int64()), "x[]", "string"),
        (
            record(field("y", "string")) | {"name": "I"},
            pa.struct([("y", pa.bool_())]),
            "x.y",
            "string",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 4},
            pa.decimal128(10, 2),
            "x",
            "decimal(10, 4)",
        ),
    ],
)
def test_other_changes_name_the_field_and_both_types(
    wrote: Any, reads: pa.DataType, path: str, told: str
) -> None:
    with pytest.raises(Mismatch) as caught:
        AvroReader(json.dumps(record(field("x", wrote))), pa.struct([("x", reads)]))
    assert (caught.value.path, caught.value.wrote) == (path, told)
    assert caught.value.reads


def test_a_field_without_default_must_have_been_written() -> None:
    with pytest.raises(Mismatch, match=r"b was written as nothing, and it has no default"):
        read(record(field("a", "int")), record(field("a", "int"), field("b", "int")), b"\x02")


def test_a_default_may_be_of_any_type() -> None:
    """As Avro says it; fastavro gives what stands in the schema."""
    inner = record(field("x", "long"), field("y", "string", default="why")) | {"name": "I"}
    kinds = {
        "b": ("bytes", "\u00ff\u0001", b"\xff\x01"),
        "r": (inner, {"x": 3}, {"x": 3, "y": "why"}),
        "m": ({"type": "map", "values": "int"}, {"k": 1}, [("k", 1)]),
        "t": ({"type": "int", "logicalType": "date"}, 1, date(1970, 1, 2)),
        "d": ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u0001\u0000", Decimal("2.56")),
    }  # fmt: skip
    reader = record(*(field(n, kind, default=default) for n, (kind, default, _) in kinds.items()))
    found = read(record(field("a", "int")), reader, b"\x02")
    assert found == {name: expected for name, (_, _, expected) in kinds.items()}


def test_another_record_with_nothing_in_common_is_no_version() -> None:
    reader = record(field("x", ["null", "int"], default=None))
    assert read(record(field("a", "int")), reader, b"\x02") == {"x": None}
    with pytest.raises(Mismatch, match="the record was written as record Other and is read as R"):
        read(record(field("a", "int")) | {"name": "Other"}, reader, b"\x02")


def test_a_precision_that_nobody_knows_is_looked_at_by_value() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    reader = AvroReader(
        json.dumps(record(field("d", kind))), pa.struct([("d", pa.decimal128(5, 2))])
    )
    rows, places, bad = reader.read(packed([b"\x04\x01\x00", b"\x06\x7f\x00\x00"]))
    assert rows.to_pylist() == [{"d": Decimal("2.56")}]
    assert (places.tolist(), [each.place for each in bad]) == ([0], [1])


def test_units_are_the_writers() -> None:
    writer = record(field("at", {"type": "long", "logicalType": "timestamp-millis"}))
    content = message(writer, {"at": 1_700_000_000_123})
    columns = pa.struct([("at", pa.timestamp("us", "UTC"))])
    rows, _, _ = AvroReader(json.dumps(writer), columns).read(packed([content]))
    assert rows.field(0).cast(pa.int64()).to_pylist() == [1_700_000_000_123_000]


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ({"type": "long", "logicalType": "timestamp-nanos"}, pa.timestamp("us", "UTC")),
        ({"type": "long", "connect.name": "io.debezium.time.NanoTimestamp"}, pa.timestamp("us")),
        ({"type": "long", "connect.name": "io.debezium.time.NanoTime"}, pa.time64("us")),
    ],
)
def test_nanoseconds_are_cut_off_where_the_column_has_none(
    kind: dict[str, str], column: pa.DataType
) -> None:
    writer = record(field("at", kind))
    content = message(record(field("at", "long")), {"at": 1_700_000_123_789})
    rows, _, bad = AvroReader(json.dumps(writer), pa.struct([("at", column)])).read(
        packed([content])
    )
    assert bad == []
    assert rows.field(0).cast(pa.int64()).to_pylist() == [1_700_000_123]


def test_nanoseconds_of_a_text_are_cut_off() -> None:
    kind = {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}
    columns = pa.struct([("at", pa.timestamp("us", "UTC"))])
    content = message(record(field("at", "string")), {"at": "1970-01-01T00:00:01.000002789Z"})
    reader = AvroReader(json.dumps(record(field("at", kind))), columns)
    rows, _, bad = reader.read(packed([content]))
    assert bad == []
    assert rows.field(0).cast(pa.int64()).to_pylist() == [1_000_002]
