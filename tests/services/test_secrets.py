"""Secrets, written out in a job or by reference, are in nothing that it leaves behind or says."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer

import headrace as hr
from headrace.connectors import databases, kafka, memory
from headrace.errors import HeadraceError
from tests.services.kafka_sinks import committed, values
from tests.services.kafka_topics import Topics

pytestmark = [pytest.mark.services, pytest.mark.spark]

SECRET = "geh3im"
OPTIONS = {"sasl.password": f"sasl-{SECRET}", "ssl.key.password": f"key-{SECRET}"}


@dataclass
class Row:
    key: str
    number: int


def job(root: Path, bootstrap: str, topic: str, dsn: str, table: str) -> hr.Environment:
    user, _, place = dsn.removeprefix("postgresql://").partition("@")
    # The server trusts everybody, so that any password is a right one.
    told = f"postgresql://{user.partition(':')[0]}:{SECRET}@{place}"
    env = hr.Environment("s5", checkpoint=root / "state", restart=hr.Restart.never(), shards=1)
    rows = env.from_source(
        kafka.KafkaSource(bootstrap, topics=topic, schema=Row, stop="latest", options=OPTIONS),
        uid="in",
    )
    out = kafka.KafkaSink(
        bootstrap, f"{topic}-out", key="key", create=kafka.NewTopic(1), options=OPTIONS
    )
    rows.sink_to(out, uid="out")
    rows.sink_to(databases.PostgresSink(told, table=table, create=True), uid="table")
    return env


def leaks(root: Path, secret: str = SECRET) -> list[str]:
    files = [path for path in root.rglob("*") if path.is_file()]
    assert any(path.parent.name == "manifests" for path in files), "the job left its checkpoint"
    return [path.name for path in files if secret.encode() in path.read_bytes()]


def test_secrets_are_in_no_file_and_no_line_of_a_job(
    kafka, postgres, topic, tmp_path: Path, capfd, caplog
) -> None:
    caplog.set_level(logging.DEBUG)
    Topics(kafka.bootstrap).make(topic)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(100):
        producer.produce(topic, json.dumps({"key": "a", "number": number}).encode())
    producer.flush()
    table = topic.replace("-", "_")
    summary = job(tmp_path, kafka.bootstrap, topic, postgres.dsn, table).execute()
    with pytest.raises(HeadraceError) as refused:
        job(
            tmp_path / "b", kafka.bootstrap, topic, "postgresql://ada@127.0.0.1:1/x", table
        ).execute()
    assert "postgresql://ada:***@127.0.0.1:1/x" in str(refused.value)
    said = capfd.readouterr()
    told = f"{summary} {refused.value!r} {refused.value.__cause__!r} {said.out} {said.err} {caplog.text}"
    assert SECRET not in told
    assert not leaks(tmp_path)


def test_a_secure_broker_is_written_to_once_with_its_password_by_reference(
    secure_kafka, topic, tmp_path: Path, monkeypatch
) -> None:
    options = secure_kafka.secure_options("SCRAM-SHA-256")
    secret = options["sasl.password"]
    monkeypatch.setenv("KAFKA_PASSWORD", secret)
    options["sasl.password"] = "env:KAFKA_PASSWORD"

    def written(numbers: range, *, bounded: bool) -> hr.Environment:
        env = hr.Environment("secure", checkpoint=tmp_path, restart=hr.Restart.never(), shards=1)
        rows = [{"n": number} for number in numbers]
        sink = kafka.KafkaSink(
            secure_kafka.secure_address, topic, create=kafka.NewTopic(2), options=options
        )
        env.from_source(memory.MemorySource(rows, bounded=bounded), uid="in").sink_to(
            sink, uid="out"
        )
        return env

    first = written(range(100), bounded=False).start()
    assert first.await_epoch(0, timeout=60)
    first.stop(timeout=60)
    written(range(200), bounded=True).execute()
    # As anybody reads them, and at the other listener.
    found = values(committed(secure_kafka.address, topic))
    assert sorted(row["n"] for row in found) == [*range(200)]
    assert not leaks(tmp_path, secret)
