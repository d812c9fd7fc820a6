"""Envelopes that are odd or wrong: each is judged alone, and none ends a job."""

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.errors import SinkRefused
from headrace.formats.messages import DebeziumAvro, DebeziumJson
from headrace.formats.messages.avro.types import avro_schema
from headrace.formats.messages.format import DecodedMessages

COLUMNS = pa.schema({"a": pa.int64(), "d": pa.decimal128(10, 2)})


def envelope(fields: Any, *, behind: str = "", **after: Any) -> bytes:
    schema = json.dumps({"fields": [{"field": "after", "fields": fields}]})
    payload = json.dumps({"op": "c", "after": after})
    return f'{{"schema":{schema},"payload":{payload}{behind}}}'.encode()


def decoded(*messages: bytes) -> DecodedMessages:
    form = DebeziumJson()
    return form.decoder(form.row_schema(COLUMNS))(messages)


PLAIN = [{"field": "a", "type": "int64"}]


@pytest.mark.parametrize(
    "fields",
    [
        [5],
        [{"type": "int64"}],
        [{"field": "a", "type": "int64", "name": ["x"], "parameters": 3}],
        [{"field": "d", "type": "bytes", "parameters": {"scale": "nonsense"}}],
        {"field": "a"},
    ],
)
def test_a_schema_without_sense_says_nothing(fields: Any) -> None:
    found = decoded(envelope(fields, a=1), envelope(PLAIN, a=2))
    assert found.batch.column("a").to_pylist() == [1, 2]
    assert found.bad == ()


def test_a_message_is_the_same_whatever_stands_before_it() -> None:
    odd = envelope(PLAIN, behind=',"more":1', a=2)
    for messages in ([odd, envelope(PLAIN, a=1)], [envelope(PLAIN, a=1), odd]):
        found = decoded(*messages)
        assert sorted(found.batch.column("a").to_pylist()) == [1, 2]
        assert (found.places.tolist(), found.bad) == ([0, 1], ())


@pytest.mark.parametrize("scale", [2**31 - 1, -(2**31) + 1, 2_000_000, -2_000_000, 50])
def test_a_scale_that_no_decimal_has_is_a_bad_message(scale: int) -> None:
    fields = [{"field": "d", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"}]
    good, bad = ({"scale": number, "value": "AQ=="} for number in (1, scale))
    found = decoded(envelope(fields, d=bad), envelope(fields, d=good))
    assert found.batch.column("d").to_pylist() == [Decimal("0.10")]
    assert [each.place for each in found.bad] == [0]


def test_a_scale_may_be_negative() -> None:
    fields = [{"field": "d", "type": "bytes", "parameters": {"scale": "-3"}}]
    assert decoded(envelope(fields, d="AQ==")).batch.column("d").to_pylist() == [Decimal(1000)]


def _avro() -> DebeziumAvro:
    row = pa.struct({"a": pa.int64()})
    return DebeziumAvro(avro_schema(pa.schema({"before": row, "after": row, "op": pa.string()})))


@pytest.mark.parametrize("form", [DebeziumJson(), _avro()])
@pytest.mark.parametrize("change", [None, "?"])
def test_a_row_without_a_kind_of_change_is_refused_and_not_lost(
    form: DebeziumJson | DebeziumAvro, change: str | None
) -> None:
    schema = pa.schema({"a": pa.int64(), "change": pa.string()})
    rows = pa.record_batch([pa.array([1, 2, 3]), pa.array(["+I", "-U", change])], schema=schema)
    with pytest.raises(SinkRefused, match=r"one of \+I"):
        form.encoder(schema)(rows)
