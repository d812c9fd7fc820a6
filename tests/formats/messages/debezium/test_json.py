"""Change events of Debezium, against a decoder that takes them one at a time."""

import base64
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import BuildError, SinkRefused
from headrace.formats.messages import DebeziumJson
from headrace.formats.messages.format import DecodedMessages
from tests.examples import examples

COLUMNS = pa.schema(
    {"id": pa.int64(), "at": pa.timestamp("us", tz="UTC"), "price": pa.decimal128(9, 2)}
)
SCHEMA = DebeziumJson().row_schema(COLUMNS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLIS = [
    {"field": "id", "type": "int64"},
    {"field": "at", "type": "int64", "name": "io.debezium.time.Timestamp"},
    {
        "field": "price",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "1"},
    },
]


def wrapped(event: dict[str, Any] | None, fields: list[dict[str, Any]]) -> dict[str, Any]:
    row = {"type": "struct", "fields": fields}
    parts = [{**row, "field": "before"}, {**row, "field": "after"}]
    return {"schema": {"type": "struct", "fields": parts}, "payload": event}


def exact(whole: int) -> str:
    return base64.b64encode(whole.to_bytes(3, "big", signed=True)).decode()


def message(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def decoded(found: list[bytes | None], **options: Any) -> DecodedMessages:
    return DebeziumJson(**options).decoder(SCHEMA)(found)


def oracle(found: bytes | None) -> Iterator[dict[str, Any]]:
    """The rows of one message; ValueError if it is bad."""
    event = None if found is None else json.loads(found)
    if not isinstance(event, dict) and found is not None:
        raise ValueError("no object")
    unit, scale = timedelta(microseconds=1), 2
    if event and "payload" in event:
        event, unit, scale = event["payload"], timedelta(milliseconds=1), 1
    if event is None:
        return
    op, before, after = (event.get(name) for name in ("op", "before", "after"))
    check_kinds([each for each in (before, after) if each is not None])
    if op == "m":
        return
    if op not in ("c", "r", "u", "d") or (before if op == "d" else after) is None:
        raise ValueError("bad event")
    if op in ("u", "d") and before is not None:
        yield row(before, unit, scale) | {"change": "-D" if op == "d" else "-U"}
    if op != "d":
        yield row(after, unit, scale) | {"change": "+U" if op == "u" else "+I"}


def check_kinds(rows: list[dict[str, Any]]) -> None:
    """A value is a number or a text on both sides, whether its row is wanted or not."""
    if any(type(each["id"]) is not int for each in rows):
        raise ValueError("id")
    if len({type(each["at"]) for each in rows if each.get("at") is not None}) > 1:
        raise ValueError("at")


def row(given: dict[str, Any], unit: timedelta, scale: int) -> dict[str, Any]:
    at, price = given.get("at"), given.get("price")
    if isinstance(at, int):
        at = EPOCH + at * unit
    elif at is not None:
        at = datetime.fromisoformat(at)
    if price is not None:
        whole = int.from_bytes(base64.b64decode(price, validate=True), "big", signed=True)
        price = Decimal(whole).scaleb(-scale)
    return {"id": given["id"], "at": at, "price": price}


tables = st.fixed_dictionaries(
    {"id": st.integers(0, 99) | st.integers(0, 99) | st.just("x")},
    optional={
        "at": st.none() | st.integers(-(10**12), 10**12) | st.just("2025-01-01T00:00:00.25Z"),
        "price": st.none() | st.builds(exact, st.integers(-999, 999)) | st.just("%"),
        "other": st.just([{"deep": 1}]),
    },
)
events = st.fixed_dictionaries(
    {
        "before": st.none() | tables,
        "after": st.none() | tables,
        "op": st.sampled_from(["c", "u", "d", "r", "u", "d", "m", "t", "z", None]),
    }
)
found = st.one_of(
    st.builds(message, events),
    st.builds(lambda event: message(wrapped(event, MILLIS)), events | st.none()),
    st.builds(
        lambda event: json.dumps(wrapped(event, MILLIS), indent=1).encode(), events | st.none()
    ),
    st.sampled_from([None, b"", b"{}", b"null", b'{"schema":{}}', b'{"schema":']),
)


def judged(values: list[bytes | None]) -> tuple[list[tuple[int, Any]], list[int]]:
    rows, bad = [], []
    for place, value in enumerate(values):
        try:
            rows += [(place, each) for each in list(oracle(value))]
        except ValueError:
            bad.append(place)
    return rows, bad


@examples(15)
@given(st.lists(found, max_size=25))
def test_all_at_once_is_each_alone(values: list[bytes | None]) -> None:
    result = decoded(values)
    rows, bad = judged(values)
    assert list(zip(result.places.tolist(), result.batch.to_pylist(), strict=True)) == rows
    assert [each.place for each in result.bad] == bad


def test_many_bad_events_are_told_apart() -> None:
    kinds = [{"id": 1}, {"id": "x"}, {"id": 2, "price": "%"}, {"id": 1.5}, {"id": 3, "at": 5}]
    values = [message({"op": "c", "after": after}) for after in kinds * 20]
    values[7:7] = [b'{"op":"c","after":{', b'{"op":"c","after":1}', b'{"op":]}']
    result = decoded(values)
    rows, bad = judged([*values[:8], *values[9:]])
    assert result.batch.num_rows == len(rows) == 40
    assert len(result.bad) == len(bad) + 1 == 63


def test_an_update_withdraws_before_it_replaces() -> None:
    old, new = {"id": 1}, {"id": 2}
    result = decoded(
        [
            message({"op": "r", "before": None, "after": old}),
            message({"op": "u", "before": old, "after": new}),
            None,
            message({"op": "u", "before": None, "after": old}),
            message({"op": "d", "before": old, "after": None}),
        ]
    )
    assert result.batch.select(["change", "id"]).to_pylist() == [
        {"change": change, "id": number}
        for change, number in [("+I", 1), ("-U", 1), ("+U", 2), ("+U", 1), ("-D", 1)]
    ]
    assert result.places.tolist() == [0, 1, 1, 3, 4]
    assert result.bad == ()


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        ({"op": "d", "before": None}, "REPLICA IDENTITY FULL"),
        ({"op": "t"}, "truncated"),
        ({"op": "c", "after": None}, "no 'after'"),
        ({"id": 1}, "no 'op'"),
        ({"op": "q"}, "no op 'q'"),
        ({"op": "c", "after": {"id": "x"}}, "'after.id' is declared as int64.*string"),
        ({"op": "c", "after": {"id": 1.5}}, "'id'.*1.5"),
        ({"op": "c", "after": {"price": "%"}}, "'price'.*base64"),
        ({"op": "c", "after": {"at": "soon"}}, "'at'.*soon"),
        ([], "not a JSON object but an array"),
    ],
)
def test_the_cause_says_what_is_wrong(event: Any, cause: str) -> None:
    good = message({"op": "c", "after": {"id": 7}})
    result = decoded([good, message(event), good])
    assert result.batch["id"].to_pylist() == [7, 7]
    (bad,) = result.bad
    assert bad.place == 1
    with pytest.raises(ValueError, match=cause):
        raise ValueError(bad.cause)


def test_schemas_in_messages_say_what_numbers_are() -> None:
    event = {"op": "c", "after": {"id": 1, "at": 1500, "price": exact(15)}}
    result = decoded([message(wrapped(event, MILLIS)), message(event)] * 2)
    early = {"id": 1, "at": EPOCH + timedelta(seconds=1.5), "price": Decimal("1.5")}
    late = {"id": 1, "at": EPOCH + timedelta(milliseconds=1.5), "price": Decimal("0.15")}
    assert result.batch.drop_columns(["change"]).to_pylist() == [early, late] * 2


def test_the_payload_may_stand_before_its_schema() -> None:
    event = wrapped({"op": "c", "after": {"id": 1, "at": 1500}}, MILLIS)
    turned = {name: event[name] for name in ("payload", "schema")}
    result = decoded([json.dumps(turned).encode()])
    assert result.batch["at"].to_pylist() == [EPOCH + timedelta(seconds=1.5)]


def test_more_schemas_than_are_kept_are_read_all_the_same() -> None:
    event = {"op": "c", "after": {"id": 1, "at": 1500}}
    extra = [[*MILLIS, {"field": f"f{n}", "type": "int32"}] for n in range(100)]
    result = decoded([message(wrapped(event, fields)) for fields in extra])
    assert result.batch["at"].to_pylist() == [EPOCH + timedelta(seconds=1.5)] * 100


def test_other_values_come_as_debezium_writes_them() -> None:
    schema = pa.schema(
        {
            "day": pa.date32(),
            "hour": pa.time64("us"),
            "local": pa.timestamp("us"),
            "raw": pa.binary(),
            "free": pa.decimal128(9, 3),
            "tags": pa.list_(pa.string()),
        }
    )
    fields = [
        {"field": "hour", "type": "int32", "name": "io.debezium.time.Time"},
        {"field": "local", "type": "int64", "name": "io.debezium.time.NanoTimestamp"},
        {"field": "free", "type": "struct", "name": "io.debezium.data.VariableScaleDecimal"},
    ]
    after = {
        "day": 1,
        "hour": 1000,
        "local": 1_000_001_999,
        "raw": "AP8=",
        "free": {"scale": 1, "value": exact(15)},
        "tags": ["a", None],
    }
    given = DebeziumJson()
    result = given.decoder(given.row_schema(schema))(
        [message(wrapped({"op": "c", "after": after}, fields))]
    )
    assert result.bad == ()
    (found,) = result.batch.to_pylist()
    assert found["day"] == date(1970, 1, 2)
    assert str(found["hour"]) == "00:00:01"
    assert found["local"] == datetime(1970, 1, 1, 0, 0, 1, 1)
    assert (found["raw"], found["free"], found["tags"]) == (
        b"\x00\xff",
        Decimal("1.5"),
        ["a", None],
    )


@pytest.mark.parametrize(
    ("decimals", "price"), [("string", "1.5"), ("double", 1.5), ("precise", exact(150))]
)
def test_decimals_are_as_the_connector_was_told(decimals: str, price: Any) -> None:
    event = message({"op": "c", "after": {"price": price}})
    assert decoded([event], decimals=decimals).batch["price"].to_pylist() == [Decimal("1.5")]


def test_change_rows_are_written_as_events() -> None:
    batch = pa.record_batch({"id": [1, 1, 2, 2], "change": ["+I", "-U", "+U", "-D"]})
    written = DebeziumJson().encoder(batch.schema)(batch).to_pylist()
    assert [json.loads(each) for each in written] == [
        {"before": None, "after": {"id": 1}, "op": "c"},
        {"before": {"id": 1}, "after": None, "op": "d"},
        {"before": None, "after": {"id": 2}, "op": "u"},
        {"before": {"id": 2}, "after": None, "op": "d"},
    ]


def test_rows_without_changes_are_inserts() -> None:
    batch = pa.record_batch({"id": [1]})
    (event,) = DebeziumJson().encoder(batch.schema)(batch).to_pylist()
    assert json.loads(event) == {"before": None, "after": {"id": 1}, "op": "c"}


def test_an_unknown_change_is_refused() -> None:
    batch = pa.record_batch({"id": [1], "change": ["+X"]})
    with pytest.raises(SinkRefused, match="must be one of"):
        DebeziumJson().encoder(batch.schema)(batch)


def test_mistakes_are_told_when_a_pipeline_is_built() -> None:
    with pytest.raises(BuildError, match="adds the column 'change' itself"):
        DebeziumJson().row_schema(SCHEMA)
    with pytest.raises(BuildError, match=r"column 'm'.*cannot hold map"):
        DebeziumJson().row_schema(pa.schema({"m": pa.map_(pa.string(), pa.int64())}))
    with pytest.raises(BuildError, match="must be a string"):
        DebeziumJson().check_writable(pa.schema({"change": pa.int64()}))
    with pytest.raises(BuildError, match="choose millis, micros, nanos"):
        DebeziumJson(timestamps="iso")
    with pytest.raises(BuildError, match="choose precise, string, double"):
        DebeziumJson(decimals="float")
    assert DebeziumJson().row_schema(COLUMNS).names == ["id", "at", "price", "change"]
    assert DebeziumJson.changes
