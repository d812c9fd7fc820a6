"""Avro messages without a registry, with fastavro as the independent other side."""

import io
import json
import pickle
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import BuildError, SinkRefused
from headrace.formats.messages.avro.format import Avro
from headrace.formats.messages.avro.types import avro_schema
from tests.examples import examples

SCALARS = pa.schema(
    [
        ("flag", pa.bool_()),
        ("small", pa.int16()),
        ("whole", pa.int64()),
        ("ratio", pa.float64()),
        ("single", pa.float32()),
        ("text", pa.string()),
        ("octets", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("hour", pa.time64("us")),
        ("price", pa.decimal128(38, 4)),
        ("long", pa.duration("us")),
        ("place", pa.struct([("x", pa.int32()), ("name", pa.string())])),
    ]
)
NESTED = pa.schema(
    [
        ("whole", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("stops", pa.list_(pa.struct([("at", pa.timestamp("us", "UTC")), ("n", pa.int32())]))),
    ]
)
ROW: dict[str, Any] = {
    "flag": True,
    "small": -3,
    "whole": 2**62,
    "ratio": 1.5,
    "single": 0.25,
    "text": "grüße",
    "octets": b"\x00\xff",
    "at": datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
    "day": date(1969, 12, 31),
    "hour": time(23, 59, 59, 999999),
    "price": Decimal("-1234567890123456789012345678901234.5678"),
    "long": timedelta(days=-1, microseconds=5),
    "place": {"x": 7, "name": None},
}


def rows_of(decoded: Any) -> list[dict[str, Any]]:
    return list(decoded.batch.to_pylist())


def written(schema: Any, rows: list[Any]) -> list[bytes]:
    parsed, messages = fastavro.parse_schema(schema), []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        messages.append(out.getvalue())
    return messages


@pytest.mark.parametrize("schema", [SCALARS, NESTED], ids=["flat", "nested"])
def test_what_is_written_is_read_back(schema: pa.Schema) -> None:
    whole = ROW | {
        "tags": ["a", None, ""],
        "counts": [("x", 1), ("y", None)],
        "stops": [{"at": ROW["at"], "n": 1}, None],
    }
    nothing = dict.fromkeys(schema.names)
    rows = [{name: whole[name] for name in schema.names}, nothing]
    batch = pa.RecordBatch.from_pylist([nothing, *rows, *rows], schema).slice(1)
    messages = Avro().encoder(schema)(batch)
    assert messages.type == pa.binary()
    decoded = Avro().decoder(schema)(messages.to_pylist())
    decoded.batch.validate(full=True)
    assert decoded.batch.equals(batch)
    assert decoded.places.tolist() == [0, 1, 2, 3]


def test_fastavro_reads_what_we_write() -> None:
    names = [name for name in SCALARS.names if name != "long"]  # Avro has no such type
    schema = pa.schema([SCALARS.field(name) for name in names])
    row = {name: ROW[name] for name in names}
    (message,) = Avro().encoder(schema)(pa.RecordBatch.from_pylist([row], schema)).to_pylist()
    read = fastavro.schemaless_reader(io.BytesIO(message), avro_schema(schema))
    assert read == row


def test_we_read_what_fastavro_writes() -> None:
    schema: dict[str, Any] = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
            {"name": "before", "type": ["State", "null"]},
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "uid", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "price", "type": {"type": "fixed", "name": "P", "size": 5, "logicalType": "decimal", "precision": 8, "scale": 2}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }  # fmt: skip
    uid = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
    at = datetime(2024, 1, 1, tzinfo=UTC)
    row = {"id": 1, "state": "PAID", "before": None, "hash": b"ab", "uid": uid, "price": Decimal("-12.50"), "at": at}  # fmt: skip
    format = Avro(schema)
    decoded = format.decoder(format.row_schema(None))(written(schema, [row]))
    assert rows_of(decoded) == [row]
    assert decoded.batch.schema.field("at").type == pa.timestamp("ms", "UTC")
    assert decoded.batch.schema.field("hash").type == pa.binary(2)
    again = format.encoder(decoded.batch.schema)(decoded.batch).to_pylist()
    assert again == written(schema, [row])


flat = pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.float64()), ("b", pa.bool_())])
values = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(max_size=200),
        "d": st.none() | st.floats(allow_nan=False),
        "b": st.none() | st.booleans(),
    }
)


@examples(15)
@given(st.lists(values, max_size=20))
def test_bytes_are_those_of_fastavro(rows: list[dict[str, Any]]) -> None:
    batch = pa.RecordBatch.from_pylist(rows, flat)
    messages = Avro().encoder(flat)(batch).to_pylist()
    assert messages == written(avro_schema(flat), rows)
    assert rows_of(Avro().decoder(flat)(messages)) == rows


@examples(15)
@given(st.lists(values, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_a_damaged_message_is_told_by_its_place_and_harms_no_other(rows: Any, random: Any) -> None:
    messages: list[bytes] = written(avro_schema(flat), rows)
    at = random.randrange(len(messages))
    messages[at] = messages[at][:-1] if random.random() < 0.5 else messages[at] + b"\x00"
    decoded = Avro().decoder(flat)(messages)
    assert [bad.place for bad in decoded.bad] == [at]
    assert decoded.places.tolist() == [i for i in range(len(rows)) if i != at]
    assert rows_of(decoded) == [row for i, row in enumerate(rows) if i != at]


def test_random_bytes_never_raise() -> None:
    generator = np.random.default_rng(1)
    messages = [generator.bytes(size) for size in range(60)]
    for schema in (flat, SCALARS, NESTED):
        decoded = Avro().decoder(schema)(messages)
        assert len(decoded.places) + len(decoded.bad) == len(messages)
        decoded.batch.validate(full=True)


@pytest.mark.parametrize("octets", [b"\x02\x02", b"\x01\x01", b"\x04\x01"])
def test_what_avro_does_not_allow_is_bad(octets: bytes) -> None:
    """A truth of 2, the branches -1 and 2 of a union: fastavro reads some of them."""
    schema = pa.schema([("b", pa.bool_())])
    decoded = Avro().decoder(schema)([b"\x02\x01", octets, b"\x00"])
    assert rows_of(decoded) == [{"b": True}, {"b": None}]
    assert [bad.place for bad in decoded.bad] == [1]


def test_a_null_that_a_list_may_not_hold_is_refused() -> None:
    kind = {"type": "array", "items": "string"}
    format = Avro({"type": "record", "name": "R", "fields": [{"name": "l", "type": kind}]})
    schema = pa.schema([("l", pa.list_(pa.string()))])
    with pytest.raises(SinkRefused, match="does not fit the Avro schema"):
        format.encoder(schema)(pa.RecordBatch.from_pylist([{"l": [None]}], schema))


def test_bad_text_and_tombstones_are_bad_messages() -> None:
    schema = pa.schema([("s", pa.string())])
    good = written(avro_schema(schema), [{"s": "é"}])[0]
    decoded = Avro().decoder(schema)([good, good.replace(b"\xa9", b"\x28"), None, good])
    assert decoded.places.tolist() == [0, 3]
    assert [bad.place for bad in decoded.bad] == [1, 2]
    assert "utf-8" in decoded.bad[0].cause.lower()
    assert "tombstone" in decoded.bad[1].cause


def test_a_number_out_of_range_is_a_bad_message() -> None:
    schema = pa.schema([("small", pa.int8())])
    messages = written(avro_schema(schema), [{"small": 1}, {"small": 300}])
    decoded = Avro().decoder(schema)(messages)
    assert (rows_of(decoded), [bad.place for bad in decoded.bad]) == ([{"small": 1}], [1])


def test_no_messages_are_no_rows() -> None:
    decoded = Avro().decoder(SCALARS)([])
    assert decoded.batch.num_rows == 0
    assert Avro().encoder(SCALARS)(decoded.batch).to_pylist() == []


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (["null", "int", "string"], "field 'x' is a union of null, int, string"),
        ({"type": "array", "items": ["int", "string"]}, r"field 'x\[\]' is a union of int, string"),
        (["long"], "field 'x' is a union of long"),
        (["null", "Row"], "field 'x' is a recursive Row"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 100}, "field 'x' has 100 digits"),
    ],
)
def test_what_is_no_column_is_refused_with_its_field(kind: Any, told: str) -> None:
    schema = {"type": "record", "name": "Row", "fields": [{"name": "x", "type": kind}]}
    with pytest.raises(BuildError, match=told):
        Avro(schema).row_schema(None)


@pytest.mark.parametrize(
    ("kind", "octets"), [(["null", "int", "string"], b"\x04\x02a"), (["null", "Row"], b"\x00")]
)
def test_what_is_no_column_is_passed_over_where_others_are_declared(
    kind: Any, octets: bytes
) -> None:
    fields = [{"name": "n", "type": "int"}, {"name": "x", "type": kind}]
    format = Avro({"type": "record", "name": "Row", "fields": fields})
    columns = format.row_schema(pa.schema({"n": pa.int32()}))
    assert format.decoder(columns)([b"\x0e" + octets]).batch.to_pylist() == [{"n": 7}]


def test_columns_that_avro_cannot_hold_are_refused() -> None:
    with pytest.raises(BuildError, match=r"field 'm'.*keys of a map must be strings"):
        Avro().check_writable(pa.schema([("m", pa.map_(pa.int64(), pa.string()))]))
    with pytest.raises(BuildError, match="rename the column"):
        Avro().check_writable(pa.schema([("a-b", pa.int64())]))


def test_a_given_schema_must_have_the_columns() -> None:
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "string", "default": "x"}]
    format = Avro({"type": "record", "name": "R", "fields": fields})
    with pytest.raises(BuildError, match="column 'c' is no field"):
        format.check_writable(pa.schema([("a", pa.int32()), ("c", pa.int32())]))
    with pytest.raises(BuildError, match="field 'a' of the Avro schema has no default"):
        format.check_writable(pa.schema([("b", pa.string())]))
    with pytest.raises(BuildError, match="column 'a' is long, but the Avro schema has int32"):
        format.check_writable(pa.schema([("a", pa.int64())]))
    schema = pa.schema([("a", pa.int32())])
    messages = format.encoder(schema)(pa.RecordBatch.from_pylist([{"a": 5}], schema)).to_pylist()
    assert rows_of(format.decoder(format.row_schema(None))(messages)) == [{"a": 5, "b": "x"}]
    with pytest.raises(SinkRefused, match="column 'a' has a null"):
        format.encoder(schema)(pa.RecordBatch.from_pylist([{"a": None}], schema))


def test_a_format_travels_and_compares() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
    assert pickle.loads(pickle.dumps(Avro(schema))) == Avro(json.dumps(schema))
    assert Avro().for_topic("orders").subject == "orders-value"
    assert Avro().for_topic("orders", key=True).subject == "orders-key"
    assert Avro(subject="mine").for_topic("orders").subject == "mine"


def test_columns_must_come_from_somewhere() -> None:
    with pytest.raises(BuildError, match="needs schema="):
        Avro().row_schema(None)
