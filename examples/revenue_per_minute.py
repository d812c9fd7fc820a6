"""Orders from Kafka to revenue per minute and country in PostgreSQL, each order counted exactly once.

    headrace dev up kafka postgres --run "python examples/revenue_per_minute.py"

starts local servers, writes orders, runs the job and shows the table. Kill it and run it again: the job goes on where it was, and orders that were counted are not counted again.
"""

import argparse
import itertools
import json
import os
import random
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

import headrace as hr
from headrace.connectors import databases, kafka

TOPIC, TABLE, PARTITIONS = "orders", "revenue", 2
FIRST, EVERY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(milliseconds=72)
COUNTRIES = ("Austria", "Brazil", "Canada", "Denmark")


@dataclass
class Order:
    """What a message holds."""

    id: str
    country: str
    amount: float
    at: datetime


def build(bootstrap: str, dsn: str, checkpoint: Path) -> hr.Environment:
    """The job: read to where the topic ends now, so that the example ends; without `stop` it would go on for ever."""
    env = hr.Environment("revenue", checkpoint=checkpoint)
    orders = env.from_source(
        kafka.KafkaSource(bootstrap, topics=TOPIC, schema=Order, stop="latest", group="revenue"),
        watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(
            timedelta(seconds=5)
        ).with_timestamps("at"),
        uid="orders",
    )
    revenue = (
        orders.key_by("country")
        .window(hr.windows.Tumbling(timedelta(minutes=1)))
        .aggregate(orders=hr.count(), revenue=hr.sum("amount"), uid="per-minute")
    )
    revenue.sink_to(
        databases.PostgresSink(
            dsn, table=TABLE, mode="upsert", key=("country", "window_start"), create=True
        ),
        uid="table",
    )
    return env


def all_orders() -> Iterator[Order]:
    """Orders without end, in the order of their time; always the same ones, so that a later run can go on with them."""
    draw = random.Random(1)
    for number in itertools.count():
        country, amount = draw.choice(COUNTRIES), round(draw.uniform(1, 200), 2)
        yield Order(str(uuid.UUID(int=number)), country, amount, FIRST + number * EVERY)


def write_orders(bootstrap: str, count: int) -> None:
    """The first `count` orders, without those that are there: a run may have been killed while it wrote."""
    written = topic_ends(bootstrap)
    # Idempotent, or a batch that is sent again may come behind its successors, and its orders be late.
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for order in itertools.islice(all_orders(), count):
        partition = COUNTRIES.index(order.country) % PARTITIONS
        if written[partition] > 0:
            written[partition] -= 1
            continue
        content = json.dumps({**asdict(order), "at": order.at.isoformat()})
        producer.produce(TOPIC, content, order.country, partition)
        producer.poll(0)
    producer.flush(60)


def topic_ends(bootstrap: str) -> list[int]:
    """How many messages each partition of the topic has, which is made if there is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
        asked = reader.get_watermark_offsets
        return [asked(TopicPartition(TOPIC, n), timeout=30)[1] for n in range(PARTITIONS)]
    return [0] * PARTITIONS


def show(dsn: str) -> None:
    """The first rows of the table, and its sums."""
    with psycopg.connect(dsn) as connection:
        total = connection.execute("select count(*), sum(orders), sum(revenue) from revenue")
        minutes, orders, revenue = total.fetchone() or (0, 0, 0.0)
        print(f"{minutes} minutes and countries, {orders} orders, revenue {revenue:,.2f}")
        first = "select window_start, country, orders, revenue from revenue order by 1, 2 limit 4"
        for start, country, count, amount in connection.execute(first):
            print(f"  {start:%H:%M} {country:8} {count:5} orders {amount:12,.2f}")


def main() -> None:
    """Servers, orders, the job, its result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--orders", type=int, default=50_000)
    arguments = parser.parse_args()
    bootstrap, dsn = os.environ["HEADRACE_KAFKA"], os.environ["HEADRACE_POSTGRES"]
    checkpoint = Path(".headrace/revenue")
    if not checkpoint.exists():
        write_orders(bootstrap, arguments.orders)
    build(bootstrap, dsn, checkpoint).execute()
    show(dsn)


if __name__ == "__main__":
    main()
