"""Schemas, messages and rows that are wrong: each is told as Headrace tells things, and takes no other along."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headrace.errors import BuildError, SinkRefused
from headrace.formats.messages import Avro
from headrace.formats.messages.avro.reader import AvroReader
from headrace.formats.messages.packed import packed


def record(kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "Row", "fields": [{"name": "a", "type": kind, **more}]}


def message(kind: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(record(kind)), {"a": value})
    return out.getvalue()


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "record", "name": "Row"}, "'fields' is missing"),
        ({"type": "record", "name": "Row", "fields": [{"name": "a"}]}, "'type' is missing"),
        ({"type": "record", "name": "Row", "fields": {"a": "long"}}, "cannot be read"),
        (record({"type": "array"}), "'items' is missing"),
        (record({"type": "fixed", "name": "f"}), "'size' is missing"),
        (record("nonsense"), "speaks of 'nonsense'"),
        (record("long", default="abc"), "abc"),
        ("long", "rows need a record"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_where_it_is_given(schema: Any, said: str) -> None:
    with pytest.raises(BuildError, match=said):
        Avro(schema)


def test_a_union_of_one_type_is_passed_over_with_the_number_of_its_branch() -> None:
    fields = [{"name": "odd", "type": ["long"]}, {"name": "a", "type": "long"}]
    schema = {"type": "record", "name": "Row", "fields": fields}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"odd": 3, "a": 5})
    reader = AvroReader(json.dumps(schema), pa.struct({"a": pa.int64()}))
    rows, _, bad = reader.read(packed([out.getvalue()]))
    assert (rows.to_pylist(), bad) == ([{"a": 5}], [])


def test_a_time_behind_the_end_of_the_day_is_a_bad_message() -> None:
    kind = {"type": "long", "logicalType": "time-micros"}
    messages = [message("long", n) for n in (1, 2**60, -1, 2)]
    decoded = Avro(record(kind)).decoder(pa.schema({"a": pa.time64("us")}))(messages)
    assert decoded.places.tolist() == [0, 3]
    assert [bad.place for bad in decoded.bad] == [1, 2]
    assert decoded.batch.column("a").cast(pa.int64()).to_pylist() == [1, 2]


def test_instants_that_the_column_cannot_say_leave_the_others_alone() -> None:
    kind = {"type": "long", "logicalType": "timestamp-millis"}
    messages = [message("long", 2**61 if n % 7 == 3 else n) for n in range(30)]
    decoded = Avro(record(kind)).decoder(pa.schema({"a": pa.timestamp("ns", "UTC")}))(messages)
    good = [n for n in range(30) if n % 7 != 3]
    assert decoded.places.tolist() == good
    assert [bad.place for bad in decoded.bad] == [3, 10, 17, 24]
    numbers = decoded.batch.column("a").cast(pa.int64()).to_pylist()
    assert numbers == [n * 10**6 for n in good]


def test_a_number_that_avro_cannot_hold_is_refused() -> None:
    schema = pa.schema({"a": pa.uint64()})
    rows = pa.record_batch([pa.array([2**63], pa.uint64())], schema=schema)
    with pytest.raises(SinkRefused, match="does not fit the Avro schema"):
        Avro().encoder(schema)(rows)


@pytest.mark.parametrize("odd", [b"\x01\x02\x61", b"\x02\x02\x61\x05", b"\x03\x02\x61\x01"])
def test_a_message_is_judged_the_same_in_every_batch(odd: bytes) -> None:
    """A branch that a union lacks, a boolean that is none: alone, and beside a text that is not UTF-8."""
    columns = pa.schema({"a": pa.string(), "b": pa.bool_()})
    fields = [{"name": "a", "type": ["null", "string"]}, {"name": "b", "type": "boolean"}]
    decode = Avro({"type": "record", "name": "Row", "fields": fields}).decoder(columns)
    broken, good = b"\x02\x02\xff\x01", b"\x02\x02\x62\x01"
    assert [bad.place for bad in decode([odd, good]).bad] == [0]
    found = decode([odd, broken, good])
    assert [bad.place for bad in found.bad] == [0, 1]
    assert found.batch.to_pylist() == [{"a": "b", "b": True}]


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ({"type": "long", "logicalType": "decimal", "precision": 5, "scale": 2}, 7, 7),
        ({"type": "string", "logicalType": "decimal", "precision": 5, "scale": 2}, "x", "x"),
        ({"type": "string", "logicalType": "date"}, "x", "x"),
        ({"type": "int", "logicalType": "timestamp-millis"}, 7, 7),
    ],
)
def test_a_logical_type_on_a_type_that_has_none_says_nothing(
    kind: dict[str, Any], value: Any, read: Any
) -> None:
    format = Avro(record(kind))
    decoded = format.decoder(format.row_schema(None))([message(kind["type"], value)])
    assert decoded.batch.to_pylist() == [{"a": read}]


def test_a_default_of_the_writer_that_does_not_fit_is_no_matter() -> None:
    """Java took such schemas for years, so registries hold them."""
    writer = record({"type": "array", "items": "int"}, default="none")
    reader = AvroReader(json.dumps(writer), pa.struct([("a", pa.list_(pa.int32()))]))
    rows, _, bad = reader.read(packed([b"\x02\x0e\x00", b"\x05"]))
    assert rows.to_pylist() == [{"a": [7]}]
    assert [each.place for each in bad] == [1]


def test_a_schema_that_fastavro_refuses_makes_bad_messages() -> None:
    symbols = {"type": "enum", "name": "E", "symbols": ["a-b"]}
    writer = record({"type": "array", "items": symbols})
    reader = AvroReader(json.dumps(writer), pa.struct([("a", pa.list_(pa.string()))]))
    _, _, bad = reader.read(packed([b"\x02\x00\x00"]))
    assert "schema that it was written with cannot be used: Every symbol" in bad[0].cause
