"""Orders with what is known of their customers, who come as a stream of changes to a table (Debezium JSON).

    headrace dev up kafka --run "python examples/customers_cdc.py"

starts a local Kafka, writes changes and orders, runs the job and shows the result. A change of a customer is seen by the orders behind it; one who was deleted is unknown from then on.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import headrace as hr
from headrace.connectors import kafka, memory

CUSTOMERS, ORDERS = "customers", "orders-of-customers"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Customer:
    """A row of the table."""

    id: int
    name: str
    city: str


@dataclass
class Order:
    """What a message of the orders holds."""

    order: int
    customer: int
    amount: float


@dataclass
class Delivery:
    """An order and where it goes; None if nobody knows."""

    order: int
    amount: float
    name: str | None
    city: str | None


class Enrich(hr.KeyedCoProcessFunction):
    """Keeps every customer as the last change left them."""

    customer: hr.state.Value[Customer] = hr.state.FOREVER

    def process_element1(self, order: Any, ctx: Any) -> Iterator[Delivery]:
        """An order."""
        known = self.customer.value()
        name, city = (known.name, known.city) if known else (None, None)
        yield Delivery(order.order, order.amount, name, city)

    def process_element2(self, row: Any, ctx: Any) -> None:
        """A change: "-U" is the row that the next one replaces, "-D" one that is gone."""
        if row.change == "-D":
            self.customer.clear()
        elif row.change != "-U":
            self.customer.update(Customer(row.id, row.name, row.city))


def build(bootstrap: str, checkpoint: Path, result: memory.MemorySink) -> hr.Environment:
    """The job, up to where both topics end now."""
    env = hr.Environment("deliveries", checkpoint=checkpoint)
    recorded = hr.WatermarkStrategy.monotonous().with_record_timestamps()
    customers = env.from_source(
        kafka.KafkaSource(
            bootstrap, topics=CUSTOMERS, schema=Customer, format="debezium-json", stop="latest"
        ),
        watermarks=recorded,
        uid="customers",
    )
    orders = env.from_source(
        kafka.KafkaSource(bootstrap, topics=ORDERS, schema=Order, stop="latest"),
        watermarks=recorded,
        uid="orders",
    )
    enriched = (
        orders.key_by("customer")
        .connect(customers.key_by("id"))
        .process(Enrich(), ordered=True, uid="enrich")
    )
    enriched.sink_to(result, uid="deliveries")
    return env


def change(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> bytes:
    """A message as Debezium writes it, without its schema."""
    return json.dumps({"op": op, "before": before, "after": after}).encode()


def messages() -> Iterator[tuple[str, int, bytes | None]]:
    """Topic, second and content of every message."""
    ada = {"id": 1, "name": "Ada", "city": "London"}
    moved = {**ada, "city": "Turin"}
    bob = {"id": 2, "name": "Bob", "city": "Berlin"}
    yield CUSTOMERS, 0, change("r", None, ada)
    yield CUSTOMERS, 1, change("c", None, bob)
    for second, customer in ((2, 1), (4, 1), (5, 2), (8, 2)):
        order = {"order": second, "customer": customer, "amount": 10.0 * second}
        yield ORDERS, second, json.dumps(order).encode()
    yield CUSTOMERS, 3, change("u", ada, moved)
    yield CUSTOMERS, 6, change("d", bob, None)
    yield CUSTOMERS, 7, None  # the tombstone behind a deletion


def write(bootstrap: str) -> None:
    """Both topics, without the messages that are there: a run may have been killed while it wrote."""
    written = {topic: topic_end(bootstrap, topic) for topic in (CUSTOMERS, ORDERS)}
    # Idempotent, or a batch that is sent again may come behind its successors.
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for topic, second, content in messages():
        if written[topic] > 0:
            written[topic] -= 1
            continue
        moment = FIRST + timedelta(seconds=second)
        producer.produce(topic, content, b"key", timestamp=int(moment.timestamp() * 1000))
    producer.flush(60)


def topic_end(bootstrap: str, topic: str) -> int:
    """How many messages a topic has, which is made if there is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
        return reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
    return 0


def main() -> None:
    """Servers, messages, the job, its result."""
    bootstrap = os.environ["HEADRACE_KAFKA"]
    checkpoint = Path(".headrace/deliveries")
    if not checkpoint.exists():
        write(bootstrap)
    result = memory.MemorySink()
    build(bootstrap, checkpoint, result).execute()
    for row in result.to_pylist():
        print(f"order {row['order']}: {row['amount']:6.2f} to {row['name']} in {row['city']}")


if __name__ == "__main__":
    main()
