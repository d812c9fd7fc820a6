"""Debezium's Avro envelopes as change rows, without a registry."""

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from headrace.errors import BuildError
from headrace.formats.messages.debezium.avro import DebeziumAvro

#: As the PostgreSQL connector registers it.
VALUE = {
    "type": "record",
    "name": "Value",
    "namespace": "shop.public.customers",
    "fields": [
        {"name": "id", "type": {"type": "int", "connect.type": "int16"}},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "born", "type": ["null", {"type": "int", "connect.version": 1, "connect.name": "io.debezium.time.Date"}], "default": None},
        {"name": "seen", "type": ["null", {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}], "default": None},
        {"name": "zoned", "type": ["null", {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}], "default": None},
        {"name": "credit", "type": ["null", {"type": "bytes", "scale": 2, "precision": 10, "connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal"}], "default": None},
    ],
}  # fmt: skip
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.customers",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}  # fmt: skip
ADA = {
    "id": 1,
    "name": "Ada",
    "born": 1,
    "seen": 1_700_000_000_000_001,
    "zoned": "2024-01-02T03:04:05.6Z",
    "credit": Decimal("10.25"),
}


def event(op: str, before: Any = None, after: Any = None) -> bytes:
    out = io.BytesIO()
    row = {"before": before, "after": after, "op": op, "source": {"lsn": 5}, "ts_ms": 7}
    fastavro.schemaless_writer(out, fastavro.parse_schema(ENVELOPE), row)
    return out.getvalue()


def test_events_become_change_rows() -> None:
    format = DebeziumAvro(ENVELOPE)
    schema = format.row_schema(None)
    assert schema.names == ["id", "name", "born", "seen", "zoned", "credit", "change"]
    bob = ADA | {"id": 2, "name": "Bob"}
    events = [
        event("r", after=ADA),
        event("c", after=bob),
        event("u", bob, bob | {"name": "Rob"}),
        None,
        event("d", ADA),
        event("u", None, ADA),
    ]
    decoded = format.decoder(schema)(events)
    rows = [(r["change"], r["id"], r["name"]) for r in decoded.batch.to_pylist()]
    assert rows == [
        ("+I", 1, "Ada"),
        ("+I", 2, "Bob"),
        ("-U", 2, "Bob"),
        ("+U", 2, "Rob"),
        ("-D", 1, "Ada"),
        ("+U", 1, "Ada"),
    ]
    assert decoded.places.tolist() == [0, 1, 2, 2, 4, 5]
    assert decoded.bad == ()
    first = decoded.batch.to_pylist()[0]
    assert first["born"] == date(1970, 1, 2)
    assert first["seen"] == datetime(2023, 11, 14, 22, 13, 20, 1)
    assert first["zoned"] == datetime(2024, 1, 2, 3, 4, 5, 600000, tzinfo=UTC)
    assert first["credit"] == Decimal("10.25")


def test_declared_columns_may_be_fewer_and_wider() -> None:
    format = DebeziumAvro(ENVELOPE)
    schema = format.row_schema(pa.schema([("credit", pa.decimal128(38, 18)), ("id", pa.int64())]))
    decoded = format.decoder(schema)([event("c", after=ADA)])
    assert decoded.batch.to_pylist() == [{"credit": Decimal("10.25"), "id": 1, "change": "+I"}]


def test_what_no_change_row_can_say_is_a_bad_message() -> None:
    format = DebeziumAvro(ENVELOPE)
    events = [event("t"), event("d"), event("c", after=ADA), b"\xff"]
    decoded = format.decoder(format.row_schema(None))(events)
    assert decoded.places.tolist() == [2]
    assert [bad.place for bad in decoded.bad] == [0, 1, 3]
    assert "truncated" in decoded.bad[0].cause
    assert "before" in decoded.bad[1].cause


def test_change_rows_are_written_as_events() -> None:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("change", pa.string())])
    kinds = ["+I", "-U", "+U", "-D"]
    batch = pa.record_batch([[1, 1, 1, 1], ["a", "a", "b", "b"], kinds], schema=schema)
    own = {"type": "record", "name": "V", "fields": [{"name": "id", "type": ["null", "long"]}, {"name": "name", "type": ["null", "string"]}]}  # fmt: skip
    fields = [{"name": "before", "type": ["null", own]}, {"name": "after", "type": ["null", "V"]}, {"name": "op", "type": "string"}]  # fmt: skip
    format = DebeziumAvro({"type": "record", "name": "E", "fields": fields})
    messages = format.encoder(schema)(batch).to_pylist()
    read = [fastavro.schemaless_reader(io.BytesIO(m), fastavro.parse_schema({"type": "record", "name": "E", "fields": fields})) for m in messages]  # fmt: skip
    assert [(r["op"], r["before"], r["after"]) for r in read] == [
        ("c", None, {"id": 1, "name": "a"}),
        ("d", {"id": 1, "name": "a"}, None),
        ("u", None, {"id": 1, "name": "b"}),
        ("d", {"id": 1, "name": "b"}, None),
    ]
    decoded = format.decoder(schema)(messages)
    assert decoded.batch.column("change").to_pylist() == ["+I", "-D", "+U", "-D"]


def test_a_schema_that_is_no_envelope_is_refused() -> None:
    with pytest.raises(BuildError, match="no Debezium envelope"):
        DebeziumAvro(VALUE)
    with pytest.raises(BuildError, match="needs registry="):
        DebeziumAvro().row_schema(pa.schema([("id", pa.int64())]))


def test_columns_that_the_envelopes_cannot_become_are_refused_where_they_are_declared() -> None:
    with pytest.raises(
        BuildError, match=r"before\.name was written as string and is read as int64"
    ):
        DebeziumAvro(ENVELOPE).row_schema(pa.schema([("name", pa.int64())]))
