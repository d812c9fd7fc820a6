"""What other clients of a schema registry write is read here, and what is written here they read."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from headrace.formats.messages import Avro, Protobuf, Registered, Registry
from headrace.formats.messages.json.schema import json_schema
from headrace.formats.messages.protobuf.files import message_class
from headrace.formats.messages.protobuf.text import parsed_proto

pytestmark = pytest.mark.services

AT = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)


@pytest.fixture
def where(registry: Any) -> Registry:
    return Registry(registry.url)


@pytest.fixture
def topic() -> str:
    return f"clients-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def client(registry: Any) -> Iterator[Any]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def value(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


ORDER_AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip
ORDER = {"id": 1, "state": "PAID", "price": Decimal("-1.25"), "at": AT, "tags": ["a", "b"]}


def test_avro_of_confluents_serializer(
    where: Registry, topic: str, client: Any, value: Any
) -> None:
    message = AvroSerializer(client, json.dumps(ORDER_AVRO))(ORDER, value)
    format = Avro(registry=where).for_topic(topic)
    decoded = format.decoder(format.row_schema(None))([message])
    assert decoded.batch.to_pylist() == [ORDER]


def test_avro_for_confluents_deserializer(
    where: Registry, topic: str, client: Any, value: Any
) -> None:
    format = Avro(ORDER_AVRO, registry=where).for_topic(topic)
    schema = format.row_schema(None)
    (message,) = format.encoder(schema)(pa.RecordBatch.from_pylist([ORDER], schema)).to_pylist()
    assert AvroDeserializer(client)(message, value) == ORDER
    # Columns without a schema of the user's own: a message of theirs is the same message of ours.
    derived = Avro(registry=where, subject=f"{topic}-derived")
    flat = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    row = {"id": 1, "at": AT}
    (message,) = derived.encoder(flat)(pa.RecordBatch.from_pylist([row], flat)).to_pylist()
    assert AvroDeserializer(client)(message, value) == row


COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
PERSON = {"id": 1, "name": "Ada", "tags": ["x"]}


def test_json_of_confluents_serializer(
    where: Registry, topic: str, client: Any, value: Any
) -> None:
    shape = {
        "title": "Person",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    message = JSONSerializer(json.dumps(shape), client)(PERSON, value)
    format = Registered(registry=where).for_topic(topic)
    assert format.row_schema(None) == COLUMNS
    assert format.decoder(COLUMNS)([message]).batch.to_pylist() == [PERSON]


def test_json_for_confluents_deserializer(
    where: Registry, topic: str, client: Any, value: Any
) -> None:
    """Theirs checks each message against the schema."""
    format = Registered(registry=where).for_topic(topic)
    columns = pa.schema(
        [
            *COLUMNS,
            ("at", pa.timestamp("us", "UTC")),
            ("price", pa.decimal128(5, 2)),
            ("spans", pa.map_(pa.string(), pa.duration("us"))),
            ("place", pa.struct([("x", pa.float64())])),
        ]
    )
    full = PERSON | {"at": AT, "price": Decimal("1.50"), "spans": [], "place": {"x": None}}
    nothing = dict.fromkeys(columns.names)
    batch = pa.RecordBatch.from_pylist([full, nothing], columns)
    messages = format.encoder(columns)(batch).to_pylist()
    read = JSONDeserializer(json_schema(columns), schema_registry_client=client)
    first, second = (read(message, value) for message in messages)
    assert (first["id"], first["tags"], first["place"]) == (1, ["x"], {"x": None})
    assert second == nothing


PROTO = """
    syntax = "proto3";
    package shop;
    import "google/protobuf/timestamp.proto";
    message Refund { int64 id = 1; }
    message Order {
      int64 id = 1;
      optional string name = 2;
      repeated string tags = 3;
      google.protobuf.Timestamp at = 4;
      message Line { int32 count = 1; }
    }
"""


@pytest.fixture(scope="module")
def files() -> bytes:
    file = parsed_proto(PROTO)
    file.name = f"orders-{uuid.uuid4().hex[:6]}.proto"
    return bytes(FileDescriptorSet(file=[file]).SerializeToString())


@pytest.mark.parametrize("name", ["shop.Refund", "shop.Order", "shop.Order.Line"])
def test_protobuf_in_both_directions(
    where: Registry, topic: str, client: Any, value: Any, files: bytes, name: str
) -> None:
    kind = message_class(files, name)
    serialize = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    sent = kind(**({"count": 3} if name == "shop.Order.Line" else {"id": 3}))
    message = serialize(sent, value)
    format = Protobuf(kind, registry=where).for_topic(topic)
    schema = format.row_schema(None)
    decoded = format.decoder(schema)([message])
    assert decoded.bad == ()
    assert decoded.batch.column(0).to_pylist() == [3]
    (again,) = format.encoder(schema)(decoded.batch).to_pylist()
    assert again[5:] == message[5:]
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False})(again, value)
    assert read == sent


def test_protobuf_without_a_descriptor_is_read_by_the_registrys(
    where: Registry, topic: str, client: Any, value: Any, files: bytes
) -> None:
    kind = message_class(files, "shop.Order")
    message = ProtobufSerializer(kind, client, {"use.deprecated.format": False})(
        kind(id=1, tags=["a"], at={"seconds": 1}), value
    )
    format = Protobuf(type="shop.Order", registry=where).for_topic(topic)
    decoded = format.decoder(format.row_schema(None))([message])
    assert decoded.batch.to_pylist() == [
        {"id": 1, "name": None, "tags": ["a"], "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}
    ]


def test_protobuf_that_was_registered_as_text_is_read(
    where: Registry, topic: str, client: Any, files: bytes
) -> None:
    """As Java's clients register it."""
    from confluent_kafka.schema_registry import Schema

    number = client.register_schema(f"{topic}-value", Schema(PROTO, "PROTOBUF"))
    body = message_class(files, "shop.Order")(id=9, name="x").SerializeToString()
    message = b"\x00" + number.to_bytes(4) + b"\x02\x02" + body
    format = Protobuf(type="shop.Order", registry=where).for_topic(topic)
    schema = format.row_schema(None)
    decoded = format.decoder(schema)([message, message[:5] + b"\x00" + body])
    assert decoded.batch.select(["id", "name"]).to_pylist() == [{"id": 9, "name": "x"}]
    assert decoded.bad[0].cause == "the message is a shop.Refund; this job reads shop.Order"
