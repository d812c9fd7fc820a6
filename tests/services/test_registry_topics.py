"""Jobs over topics whose schemas are in a registry: from a topic to a topic, and versions that come while it reads."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

import headrace as hr
from headrace.connectors.kafka import KafkaSink, KafkaSource, NewTopic
from headrace.connectors.memory import MemorySink
from headrace.errors import InputError
from headrace.formats.messages import Avro, Registry
from headrace.testing import run_local
from tests.services.kafka_sinks import committed
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services


@pytest.fixture
def where(registry: Any) -> Registry:
    return Registry(registry.url)


@pytest.fixture
def topics(kafka: Any) -> Topics:
    return Topics(kafka.bootstrap)


@pytest.fixture
def topic() -> str:
    return f"registry-{uuid.uuid4().hex[:10]}"


@pytest.fixture
def client(registry: Any) -> Iterator[Any]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


def messages(client: Any, topic: str, fields: dict[str, Any], *rows: dict[str, Any]) -> list[bytes]:
    """As somebody else's producer writes them."""
    shapes = [{"name": name, "type": kind} for name, kind in fields.items()]
    shape = json.dumps({"type": "record", "name": "Order", "fields": shapes})
    context = SerializationContext(topic, MessageField.VALUE)
    return [AvroSerializer(client, shape)(row, context) for row in rows]


def test_rows_go_from_topic_to_topic_with_columns_that_nobody_declared(
    kafka: Any, topics: Topics, topic: str, where: Registry, client: Any
) -> None:
    topics.make(topic)
    rows = [{"id": n, "name": f"name-{n}"} for n in range(20)]
    topics.send(topic, messages(client, topic, {"id": "long", "name": "string"}, *rows))
    out = f"{topic}-out"
    env = hr.Environment("orders")
    source = KafkaSource(kafka.bootstrap, topic, format=Avro(registry=where), stop="latest")
    assert source.schema == pa.schema([("id", pa.int64()), ("name", pa.string())])
    env.from_source(source, uid="in").sink_to(
        KafkaSink(
            kafka.bootstrap,
            out,
            format=Avro(registry=where),
            key="id",
            key_format=Avro(registry=where),
            create=NewTopic(partitions=1, replication=1),
            control_topic=f"{topic}-markers",
        ),
        uid="out",
    )
    assert run_local(env, crashes={(1, "staged")}).finished
    found = committed(kafka.bootstrap, out)
    read = AvroDeserializer(client)
    value, key = (
        SerializationContext(out, field) for field in (MessageField.VALUE, MessageField.KEY)
    )
    assert [read(message.value(), value) for message in found] == rows
    assert [read(message.key(), key) for message in found] == [{"id": row["id"]} for row in rows]
    assert client.get_versions(f"{out}-key") == client.get_versions(f"{out}-value") == [1]


def test_versions_that_fit_are_read_and_one_that_does_not_is_a_dead_letter(
    kafka: Any, topics: Topics, topic: str, where: Registry, client: Any
) -> None:
    topics.make(topic)
    topics.send(topic, messages(client, topic, {"amount": "float"}, {"amount": 0.5}))
    later = {"note": "string", "amount": "double"}
    topics.send(topic, messages(client, topic, later, {"note": "x", "amount": 1.5}))
    topics.send(topic, messages(client, topic, {"amount": "string"}, {"amount": "much"}))
    topics.send(topic, messages(client, topic, {"amount": "float"}, {"amount": 2.5}))

    def job(on_decode_error: Any) -> tuple[Any, Any]:
        env, rows, errors = hr.Environment("orders"), MemorySink(), MemorySink()
        source = KafkaSource(
            kafka.bootstrap,
            topic,
            schema={"amount": float},
            format=Avro(registry=where),
            stop="latest",
            on_decode_error=on_decode_error,
        )
        stream = env.from_source(source, uid="in")
        stream.sink_to(rows, uid="out")
        stream.errors.sink_to(errors, uid="errors")
        run_local(env)
        return rows.to_arrow(), errors.to_arrow()

    rows, errors = job("dead_letter")
    assert rows.column("amount").to_pylist() == [0.5, 1.5, 2.5]
    (dead,) = errors.to_pylist()
    told = f"version 3 (id {int.from_bytes(dead['raw'][1:5])}) of '{topic}-value' has amount: string; this job reads amount: double since version 1"
    assert told in dead["cause"]
    assert dead["offset"] == 2
    with pytest.raises(InputError) as caught:
        job("fail")
    assert told in str(caught.value)
