"""What a message format writes it reads back, value by value, whatever the type."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

from headrace.errors import BuildError
from headrace.formats.messages import Csv, DebeziumJson, Json, MessageFormat, Raw, String
from tests.examples import examples
from tests.formats.test_round_trip import SCHEMA, SIMPLE, rows

WORDS = pa.dictionary(pa.int32(), pa.string())
UNREAD = {
    "json": [pa.float16(), WORDS],
    "csv": [pa.float16(), pa.decimal256(60, 3)],
    "debezium-json": [pa.float16(), WORDS],
}
LOCAL = pa.field("local", pa.timestamp("us"))
many = st.lists(rows, min_size=1, max_size=8)
quickly = examples(8, phases=[Phase.explicit, Phase.generate])


def table(values: list[dict[str, Any]], names: list[str]) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(values, SCHEMA).select(names)
    local = batch.column("instant").cast(pa.timestamp("us"))
    return batch.append_column(LOCAL, local)


def assert_comes_back(given: MessageFormat, batch: pa.RecordBatch) -> None:
    given.check_writable(batch.schema)
    messages = given.encoder(batch.schema)(batch)
    assert messages.type == pa.binary()
    assert len(messages) == len(batch)
    result = given.decoder(batch.schema)(messages.to_pylist())
    assert result.bad == ()
    assert result.places.tolist() == list(range(len(batch)))
    assert result.batch.schema == batch.schema
    assert result.batch.to_pylist() == batch.to_pylist()


@pytest.mark.parametrize("given_", [Json(), Csv(), Csv("\t")], ids=repr)
@pytest.mark.parametrize("names", [SCHEMA.names, SIMPLE], ids=["all", "simple"])
@quickly
@given(values=many)
def test_every_value_comes_back(
    given_: MessageFormat, names: list[str], values: list[dict[str, Any]]
) -> None:
    assert_comes_back(given_, table(values, names))
    assert_comes_back(given_, table(values, names).slice(1))


@pytest.mark.parametrize("unit", ["seconds", "micros"])
@quickly
@given(values=many)
def test_instants_as_numbers_come_back(unit: str, values: list[dict[str, Any]]) -> None:
    assert_comes_back(Json(timestamps=unit), table(values, SIMPLE))


@pytest.mark.parametrize("decimals", ["precise", "string", "double"])
@quickly
@given(values=many)
def test_change_events_come_back(decimals: str, values: list[dict[str, Any]]) -> None:
    batch = table(values, SIMPLE)
    kinds = ["+I", "+U", "-D"]
    change = pa.array([kinds[place % 3] for place in range(len(batch))])
    batch = batch.append_column(pa.field("change", pa.string()), change)
    assert_comes_back(DebeziumJson(decimals=decimals), batch)


@quickly
@given(values=st.lists(st.none() | st.text(st.characters(codec="utf-8")), max_size=5))
def test_single_values_come_back(values: list[str | None]) -> None:
    assert_comes_back(String(), pa.record_batch({"value": pa.array(values, pa.string())}))
    octets = [None if value is None else value.encode() for value in values]
    assert_comes_back(Raw(), pa.record_batch({"value": pa.array(octets, pa.binary())}))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.large_string(), 'a"b'),
        (pa.uint64(), 2**64 - 1),
        (pa.float32(), 1.5),
        (pa.time32("ms"), time(1, 2, 3)),
        (pa.timestamp("ns"), datetime(2025, 1, 1)),
        (pa.timestamp("ms", tz="UTC"), datetime(2025, 1, 1, tzinfo=UTC)),
        (pa.timestamp("s", tz="Europe/Berlin"), datetime(2025, 1, 1, tzinfo=UTC)),
        (pa.decimal256(60, 3), Decimal("12345678901234567890123456789012345678901234.125")),
        (pa.binary(2), b"ab"),
        (pa.large_binary(), b"abc"),
        (pa.duration("ms"), timedelta(seconds=1)),
        (pa.date64(), date(2025, 1, 1)),
        (pa.struct({"a": pa.int64()}), {"a": 1}),
        (pa.float16(), None),
        (WORDS, "a"),
    ],
    ids=str,
)
@pytest.mark.parametrize("given_", [Json(), Json("millis"), Csv(), DebeziumJson()], ids=repr)
def test_other_types_come_back_or_are_refused_when_declared(
    given_: MessageFormat, kind: pa.DataType, value: Any
) -> None:
    batch = pa.RecordBatch.from_pylist([{"x": value}, {"x": None}], pa.schema({"x": kind}))
    if kind in UNREAD[given_.name]:
        with pytest.raises(BuildError, match="column 'x'"):
            given_.row_schema(batch.schema)
        return
    schema = given_.row_schema(batch.schema)
    result = given_.decoder(schema)(given_.encoder(batch.schema)(batch).to_pylist())
    assert result.bad == ()
    assert result.batch.select(["x"]).to_pylist() == batch.to_pylist()


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (pa.int8(), -3),
        (pa.bool_(), True),
        (pa.float64(), 1.5),
        (pa.binary(), b"\xff"),
        (pa.date32(), date(2025, 1, 1)),
        (pa.timestamp("us", tz="UTC"), datetime(2025, 1, 1, tzinfo=UTC)),
        (pa.duration("us"), timedelta(seconds=1)),
        (pa.decimal128(5, 2), Decimal("1.50")),
    ],
    ids=str,
)
@pytest.mark.parametrize("given_", [Json(), Csv()], ids=repr)
def test_keys_of_maps_come_back(given_: MessageFormat, kind: pa.DataType, key: Any) -> None:
    schema = pa.schema({"x": pa.map_(kind, pa.int64())})
    assert_comes_back(given_, pa.RecordBatch.from_pylist([{"x": [(key, 1)]}], schema))
