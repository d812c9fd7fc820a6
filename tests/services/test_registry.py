"""Schemas in a real registry: versions side by side, what is refused, and what happens when it is away."""

import json
import os
import pickle
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headrace.errors import BuildError, EngineError, SetupError, SinkError, SinkRefused
from headrace.formats.messages import Avro, DebeziumAvro, Json, Protobuf, Registered, Registry
from headrace.formats.messages.protobuf.derived import derived_files

pytestmark = pytest.mark.services

ORDER = pa.schema([("id", pa.int64()), ("amount", pa.float64())])


@pytest.fixture
def where(registry: Any) -> Registry:
    return Registry(registry.url)


@pytest.fixture
def topic() -> str:
    return f"formats-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def client(registry: Any) -> Any:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def batch(schema: pa.Schema, *rows: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema)


def written(format: Any, schema: pa.Schema, *rows: dict[str, Any]) -> list[bytes]:
    return list(format.encoder(schema)(batch(schema, *rows)).to_pylist())


def record(**fields: Any) -> str:
    shapes = [{"name": name, "type": kind} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "Row", "fields": shapes})


FORMATS: dict[str, Callable[[Registry], Any]] = {
    "avro": lambda where: Avro(registry=where),
    "protobuf": lambda where: Protobuf(registry=where),
    "json": lambda where: Registered(Json(), where),
}


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS.keys())
def test_rows_go_through_a_registry_and_columns_come_from_it(
    make: Callable[[Registry], Any], where: Registry, topic: str
) -> None:
    format = pickle.loads(pickle.dumps(make(where).for_topic(topic)))
    rows = [{"id": 1, "amount": 0.5}, {"id": 2, "amount": None}]
    messages = written(format, ORDER, *rows)
    assert all(message[0] == 0 for message in messages)
    columns = format.row_schema(None)
    assert columns == ORDER
    assert format.decoder(columns)([]).batch.num_rows == 0
    decoded = format.decoder(columns)([messages[0], None, messages[1], b"\x00\x00"])
    assert decoded.batch.to_pylist() == rows
    assert decoded.places.tolist() == [0, 2]
    assert [bad.place for bad in decoded.bad] == [1, 3]
    assert "begin with the id of a schema" in decoded.bad[1].cause


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS.keys())
def test_compatible_versions_are_read_side_by_side_without_a_restart(
    make: Callable[[Registry], Any], where: Registry, topic: str
) -> None:
    format = make(where).for_topic(topic)
    decode = format.decoder(ORDER)
    old = written(format, pa.schema([("id", pa.int32())]), {"id": 1})
    assert decode(old).batch.to_pylist() == [{"id": 1, "amount": None}]
    wider = pa.schema([("id", pa.int32()), ("amount", pa.float32()), ("note", pa.string())])
    new = written(format, wider, {"id": 3, "amount": 0.5, "note": "x"})
    decoded = decode([old[0], new[0], old[0], new[0]])
    assert decoded.batch.column("id").to_pylist() == [1, 3, 1, 3]
    assert decoded.batch.column("amount").to_pylist() == [None, 0.5, None, 0.5]
    assert decoded.bad == ()


def test_an_incompatible_version_names_field_and_versions(where: Registry, topic: str) -> None:
    format = Avro(registry=where).for_topic(topic)
    written(format, pa.schema([("amount", pa.string())]), {"amount": "old"})
    good = written(format, pa.schema([("amount", pa.float32())]), {"amount": 0.5})
    also = written(format, ORDER, {"id": 1, "amount": 1.5})
    wrong = written(format, pa.schema([("id", pa.int64()), ("amount", pa.string())]), {"id": 2})
    decoded = format.decoder(ORDER)([good[0], wrong[0], also[0]])
    assert decoded.batch.column("amount").to_pylist() == [0.5, 1.5]
    assert [bad.place for bad in decoded.bad] == [1]
    ids = [int.from_bytes(message[1:5]) for message in (wrong[0], good[0])]
    assert decoded.bad[0].cause == (
        f"version 4 (id {ids[0]}) of '{topic}-value' has amount: string;"
        f" this job reads amount: double since version 2 (id {ids[1]})"
    )


def test_an_incompatible_json_schema_names_field_and_versions(where: Registry, topic: str) -> None:
    format = Registered(Json(), where).for_topic(topic)
    good = written(format, ORDER, {"id": 1, "amount": 1.5})
    wrong = written(format, pa.schema([("amount", pa.bool_())]), {"amount": True})
    decoded = format.decoder(ORDER)([*good, *wrong])
    assert decoded.batch.num_rows == 1
    assert (
        "has amount: boolean; this job reads amount: double since version 1" in decoded.bad[0].cause
    )


def test_a_number_that_means_something_else_names_field_and_versions(
    where: Registry, topic: str
) -> None:
    """Protobuf itself would take the field for one that was not set."""
    format = Protobuf(registry=where).for_topic(topic)
    good = written(format, ORDER, {"id": 1, "amount": 1.5})
    swapped = pa.schema([("amount", pa.float64()), ("id", pa.int64())])
    others = Protobuf(descriptor=derived_files(swapped), registry=where).for_topic(topic)
    wrong = written(others, swapped, {"id": 2, "amount": 2.5})
    by_name = format.decoder(ORDER)([*good, *wrong])
    assert by_name.batch.to_pylist() == [{"id": 1, "amount": 1.5}, {"id": 2, "amount": 2.5}]
    own = Protobuf(descriptor=derived_files(ORDER), registry=where).for_topic(topic)
    decoded = own.decoder(ORDER)([*good, *wrong])
    assert decoded.places.tolist() == [0]
    assert (
        "has id: double as number 1; this job reads id: int64 as number 1 since version 1"
        in decoded.bad[0].cause
    )


def test_fields_keep_their_numbers_when_columns_come_and_go(where: Registry, topic: str) -> None:
    format = Protobuf(registry=where).for_topic(topic)
    place = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    first = pa.schema([("id", pa.int64()), ("amount", pa.float64()), ("place", place)])
    full = {"id": 1, "amount": 1.5, "place": {"x": 3, "y": 4}}
    written(format, first, full)
    written(format, pa.schema([("id", pa.int64())]), {"id": 1})
    turned = pa.struct([("new", pa.bool_()), ("y", pa.int32())])
    later = pa.schema([("note", pa.string()), ("place", turned), ("id", pa.int64())])
    row = {"note": "n", "place": {"new": True, "y": 4}, "id": 2}
    messages = written(format, later, row)
    old = Protobuf(descriptor=derived_files(first), registry=where).for_topic(topic)
    decoded = old.decoder(first)(messages)
    assert decoded.batch.to_pylist() == [{"id": 2, "amount": None, "place": {"x": None, "y": 4}}]


def test_an_unknown_id_is_a_bad_message_and_is_asked_for_again(where: Registry, topic: str) -> None:
    decoded = (
        Avro(registry=where).for_topic(topic).decoder(ORDER)([b"\x00\x7f\xff\xff\xff\x00\x00"])
    )
    assert decoded.batch.num_rows == 0
    assert decoded.bad[0].cause == (
        f"schema id {0x7FFFFFFF} is not known to the schema registry {where.shown_url}"
    )


def test_a_schema_of_another_kind_is_a_bad_message(where: Registry, topic: str) -> None:
    messages = written(Registered(Json(), where).for_topic(topic), ORDER, {"id": 1})
    decoded = Avro(registry=where).for_topic(topic).decoder(ORDER)(messages)
    assert "it is JSON, and the format reads AVRO" in decoded.bad[0].cause


def test_the_registry_refuses_an_incompatible_schema(
    where: Registry, topic: str, client: Any
) -> None:
    format = Avro(registry=where).for_topic(topic)
    message = written(format, ORDER, {"id": 1, "amount": 1.5})[0]
    client.set_compatibility(subject_name=f"{topic}-value", level="BACKWARD")
    number = int.from_bytes(message[1:5])
    with pytest.raises(SinkRefused) as caught:
        format.encoder(pa.schema([("id", pa.int64()), ("amount", pa.string())]))
    assert f"Latest is version 1 (id {number}); there amount is double, here string" in str(
        caught.value
    )
    assert not caught.value.retryable


def test_a_refused_json_schema_is_told_with_the_version_it_was_compared_with(
    where: Registry, topic: str, client: Any
) -> None:
    format = Registered(Json(), where).for_topic(topic)
    message = written(format, ORDER, {"id": 1, "amount": 1.5})[0]
    client.set_compatibility(subject_name=f"{topic}-value", level="BACKWARD")
    with pytest.raises(SinkRefused) as caught:
        format.encoder(pa.schema([("id", pa.int64()), ("amount", pa.string())]))
    number = int.from_bytes(message[1:5])
    assert f"Latest is version 1 (id {number}). Change the columns" in str(caught.value)
    assert "amount" in str(caught.value)


def test_schemas_may_refer_to_others(where: Registry, topic: str, client: Any) -> None:
    from confluent_kafka.schema_registry import SchemaReference

    place = json.dumps({"type": "record", "name": "Place", "namespace": "geo", "fields": [{"name": "x", "type": "int"}]})  # fmt: skip
    client.register_schema(f"{topic}-place", Schema(place, "AVRO"))
    reference = SchemaReference("geo.Place", f"{topic}-place", 1)
    text = record(at=["null", "geo.Place"], many={"type": "array", "items": "geo.Place"})
    client.register_schema(f"{topic}-value", Schema(text, "AVRO", [reference]))
    number = client.get_latest_version(f"{topic}-value").schema_id
    format = Avro(registry=where).for_topic(topic)
    schema = format.row_schema(None)
    message = b"\x00" + number.to_bytes(4) + b"\x02\x0a" + b"\x04\x02\x04\x00"
    decoded = format.decoder(schema)([message])
    assert decoded.batch.to_pylist() == [{"at": {"x": 5}, "many": [{"x": 1}, {"x": 2}]}]


def test_debezium_envelopes_go_through_a_registry(where: Registry, topic: str) -> None:
    format = DebeziumAvro(registry=where).for_topic(topic)
    schema = format.row_schema(ORDER)
    rows = [
        {"id": 1, "amount": 0.5, "change": "+I"},
        {"id": 1, "amount": 1.5, "change": "+U"},
        {"id": 1, "amount": 1.5, "change": "-D"},
    ]
    messages = written(format, schema, *rows)
    assert format.row_schema(None) == schema
    decoded = format.decoder(schema)([*messages, None])
    assert decoded.batch.to_pylist() == rows
    assert decoded.bad == ()


def test_a_registry_that_is_away_is_told_without_the_password(topic: str) -> None:
    options = {"max.retries": 1, "retries.wait.ms": 10, "retries.max.wait.ms": 20}
    away = Registry("http://ada:lovelace@127.0.0.1:1/api", options)
    format = Avro(registry=away).for_topic(topic)
    told = r"the schema registry http://ada:\*\*\*@127.0.0.1:1/api cannot be reached"
    with pytest.raises(EngineError, match=told) as reading:
        format.decoder(ORDER)([b"\x00\x00\x00\x00\x01"])
    with pytest.raises(SinkError, match=told) as writing:
        format.encoder(ORDER)
    with pytest.raises(SetupError, match=told):
        format.row_schema(None)
    assert reading.value.retryable
    assert writing.value.retryable
    assert "lovelace" not in repr(format)


def test_secrets_are_looked_up_where_the_client_is_opened(
    registry: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"LOGIN_{uuid.uuid4().hex}"
    where = Registry(registry.url, {"basic.auth.user.info": f"env:{name}"})
    assert name not in os.environ
    with pytest.raises(SetupError, match=name):
        Avro(registry=where).for_topic(topic).encoder(ORDER)
    monkeypatch.setenv(name, "ada:lovelace")
    Avro(registry=where).for_topic(topic).encoder(ORDER)
    assert b"lovelace" not in pickle.dumps(where)
    assert "lovelace" not in repr(Registry(registry.url, {"basic.auth.user.info": "ada:lovelace"}))


def test_a_subject_that_nobody_registered_gives_no_columns(where: Registry, topic: str) -> None:
    with pytest.raises(BuildError, match=f"'{topic}-value' is not known .*: declare schema="):
        Avro(registry=where).for_topic(topic).row_schema(None)
    with pytest.raises(BuildError, match="needs subject="):
        Avro(registry=where).encoder(ORDER)
