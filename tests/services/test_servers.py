"""The servers themselves: they answer, come back with what they held, and die with whoever started them."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pymysql
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from headrace._services import Kafka, Postgres
from headrace._services.process import Known
from headrace.errors import SetupError

pytestmark = pytest.mark.services


def _make_topic(options: dict[str, str], name: str) -> None:
    admin = AdminClient(options)  # without a name it is gone before the answer comes
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(20)


def _send(options: dict[str, str], topic: str, value: bytes) -> None:
    producer = Producer({**options, "acks": "all"})
    producer.produce(topic, value)
    assert producer.flush(20) == 0


def _first(options: dict[str, str], topic: str) -> bytes | None:
    consumer = Consumer({**options, "group.id": "any", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    record = consumer.poll(20)
    consumer.close()
    assert record is not None
    assert record.error() is None
    return record.value()


def test_killed_broker_comes_back_on_its_port_with_its_records(kafka: Any, topic: str) -> None:
    options = {"bootstrap.servers": kafka.bootstrap}
    _make_topic(options, topic)
    _send(options, topic, b"kept")
    kafka.kill()
    assert not kafka.running
    kafka.start()
    assert kafka.bootstrap == options["bootstrap.servers"]
    assert _first(options, topic) == b"kept"


def test_killed_database_comes_back_with_what_was_committed(postgres: Any, table: str) -> None:
    with psycopg.connect(postgres.dsn) as connection:
        connection.execute(f"create table {table} as select 17 as n")
    with psycopg.connect(postgres.dsn) as open_one:
        open_one.execute(f"insert into {table} values (18)")
        postgres.kill()
        with pytest.raises(psycopg.OperationalError):
            open_one.execute("select 1")
    postgres.start()
    with psycopg.connect(postgres.dsn) as connection:
        assert connection.execute(f"select n from {table}").fetchall() == [(17,)]


def test_mariadb_comes_back_with_what_was_committed(mariadb: Any, table: str) -> None:
    place = urlsplit(mariadb.address)
    to = {"host": place.hostname, "port": place.port, "user": place.username, "database": "test"}
    with pymysql.connect(**to) as connection, connection.cursor() as cursor:
        cursor.execute(f"create table {table} engine=innodb as select 17 as n")
        connection.commit()
    mariadb.kill()
    mariadb.start()
    with pymysql.connect(**to) as connection, connection.cursor() as cursor:
        cursor.execute(f"select n from {table}")
        assert cursor.fetchall() == ((17,),)


def test_registry_keeps_a_schema_under_confluents_interface(registry: Any, topic: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
    request = urllib.request.Request(
        f"{registry.url}/subjects/{topic}-value/versions",
        json.dumps({"schema": json.dumps(schema)}).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=20) as reply:
        number = json.load(reply)["id"]
    with urllib.request.urlopen(f"{registry.url}/schemas/ids/{number}", timeout=20) as reply:
        assert json.loads(json.load(reply)["schema"]) == schema


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_secure_listener_lets_in_who_knows_the_password(
    secure_kafka: Kafka, topic: str, mechanism: str
) -> None:
    options = {"bootstrap.servers": secure_kafka.secure_address}
    options |= secure_kafka.secure_options(mechanism)
    _make_topic(options, topic)
    _send(options, topic, b"hushed")
    assert _first(options, topic) == b"hushed"
    wrong = Producer({**options, "sasl.password": "guessed", "log_level": 0})
    wrong.produce(topic, b"never")
    assert wrong.flush(3) == 1
    wrong.purge()


def test_server_dies_with_the_process_that_started_it(servers_root: Path) -> None:
    directory = servers_root / "orphan"
    program = (
        "import sys, time; from pathlib import Path; from headrace._services import Postgres\n"
        "Postgres(Path(sys.argv[1])).start(); print('up', flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    known = Known.read(directory / "process.json")
    assert known is not None
    assert known.alive
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    until = time.monotonic() + 10
    while known.alive and time.monotonic() < until:
        time.sleep(0.02)
    assert not known.alive


def test_start_that_fails_shows_what_the_server_said(servers_root: Path) -> None:
    server = Postgres(servers_root / "broken")
    server.start()
    server.stop()
    (server.room / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(Exception, match="no_such_setting"):
        server.start()
    assert not server.running


def test_a_broker_that_does_not_start_leaves_no_controller_behind(servers_root: Path) -> None:
    server = Kafka(servers_root / "unlucky")
    taken = socket.create_server(("127.0.0.1", server.port("client")))
    with taken, pytest.raises(SetupError, match="Address already in use"):
        server.start()
    controller = Known.read(server.directory / "controller" / "process.json")
    assert controller is None
    assert not server.running
    server.remove()
