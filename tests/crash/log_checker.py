"""Fills the input of the log job and counts what its outputs lost, doubled or disordered. Shares no code with the engine."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import psycopg
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.crash.log_job import KEYS, ROWS


@dataclass(frozen=True)
class Verdict:
    """All zero: every row is there once, in the order of its key, with the right state."""

    lost: int
    doubled: int
    disordered: int
    wrong: int


CLEAN = Verdict(0, 0, 0, 0)


def fill(bootstrap: str, topic: str, out: str, rows: int = ROWS) -> None:
    """Make both topics and write the events; a key stays in its partition. Some transactions are aborted."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(topic, 2, 1), NewTopic(out, 3, 1)])
    for future in made.values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"fill-{topic}"})
    producer.init_transactions(60)
    for first in range(0, rows, 5_000):
        for commit in (False, True):
            producer.begin_transaction()
            for n in range(first, min(first + 5_000, rows) if commit else first + 50):
                key, sequence = n % KEYS, n // KEYS
                event = json.dumps({"key": key, "sequence": sequence if commit else -1})
                producer.produce(topic, event, str(key), partition=key % 2)
                producer.poll(0)
            if commit:
                producer.commit_transaction(60)
            else:
                producer.abort_transaction(60)


def in_log(bootstrap: str, topic: str) -> list[dict[str, int]]:
    """What a reader of committed records sees, partition by partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = consumer.list_topics(topic, 30).topics[topic].partitions
    rows = []
    for number in sorted(partitions):
        consumer.assign([TopicPartition(topic, number, 0)])
        while True:
            message = consumer.poll(30)
            assert message is not None, f"{topic}-{number} does not end"
            if message.error() is None:
                rows.append(json.loads(message.value()))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                break
    consumer.close()
    return rows


def make_table(dsn: str, table: str) -> None:
    """A table that numbers its rows as they are inserted."""
    columns = "id bigserial primary key, key bigint, sequence bigint, before bigint"
    with psycopg.connect(dsn) as connection:
        connection.execute(f'create table "{table}" ({columns})')  # type: ignore[call-overload]


def in_table(dsn: str, table: str) -> list[dict[str, int]]:
    """The rows of a table, in the order in which they were inserted."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute(f'select key, sequence, before from "{table}" order by id')  # type: ignore[call-overload]
        return [{"key": k, "sequence": s, "before": b} for k, s, b in found]


def in_files(folder: Path) -> list[dict[str, int]]:
    """The rows of published files, in the order of their epochs."""
    files = sorted(folder.glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def judge(rows: Iterable[dict[str, int]], total: int = ROWS) -> Verdict:
    """Every (key, sequence) once, ascending for each key, and numbered as it stands."""
    expected = Counter((n % KEYS, n // KEYS) for n in range(total))
    seen: Counter[tuple[int, int]] = Counter()
    last: dict[int, int] = {}
    disordered = wrong = 0
    for row in rows:
        key, sequence = row["key"], row["sequence"]
        seen[key, sequence] += 1
        disordered += sequence <= last.get(key, -1)
        last[key] = sequence
        wrong += row["before"] != sequence
    return Verdict(
        lost=(expected - seen).total(),
        doubled=(seen - expected).total(),
        disordered=disordered,
        wrong=wrong,
    )
