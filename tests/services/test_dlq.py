"""Dead letters go back to a real broker: once each, all or none, whatever happens on the way."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from headrace._cli.main import app
from headrace._cli.replayed import Replayed
from headrace._graph.nodes import ERRORS_SCHEMA
from headrace.errors import BuildError, SinkError
from headrace.formats import format_named
from headrace.formats.messages import message_format

pytestmark = pytest.mark.services


def _letter(topic: str, offset: int, **others: Any) -> dict[str, Any]:
    letter = dict.fromkeys(ERRORS_SCHEMA.names) | {
        "uid": "orders",
        "cause": "not JSON",
        "source": "orders",
        "partition": f"{topic}-{offset % 2}",
        "offset": offset,
        "payload": "?",
        "raw": b"\xff%d" % offset,
        "raw_key": b"key %d" % offset,
    }
    return letter | others


def _directory(place: Path, letters: list[dict[str, Any]]) -> str:
    place.mkdir()
    known = format_named("parquet")
    with (place / "part.parquet").open("wb") as file:
        writer = known.writer(file, ERRORS_SCHEMA)
        writer.write(pa.RecordBatch.from_pylist(letters, ERRORS_SCHEMA))
        writer.close()
    return str(place)


def _make(bootstrap: str, *topics: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(t, 2, 1, config=config) for t in topics]).values():
        made.result(20)


def _held(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Partition, key and value of every committed record."""
    config = {"bootstrap.servers": bootstrap, "group.id": "any", "enable.partition.eof": True}
    consumer = Consumer({**config, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(topic, number, 0) for number in (0, 1)])
    found, ended = [], 0
    while ended < 2:
        record = consumer.poll(20)
        assert record is not None
        if record.error() is not None:
            assert record.error().code() == KafkaError._PARTITION_EOF
            ended += 1
        else:
            found.append((record.partition(), record.key(), record.value()))
    consumer.close()
    return sorted(found, key=repr)


def _run(*words: str) -> str:
    done = CliRunner().invoke(app, ["dlq", *words])
    if done.exception is not None:
        raise done.exception
    return done.output


def test_letters_of_a_directory_go_back_to_their_partition_once(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    _make(kafka.bootstrap, topic)
    dead = _directory(tmp_path / "dead", [_letter(topic, 4), _letter(topic, 7, cause="too old")])
    to = ("--bootstrap", kafka.bootstrap)
    assert f"sent 1 to {topic}: letters 2" in _run("replay", dead, *to, "--only-cause", "too old")
    assert _held(kafka.bootstrap, topic) == [(1, b"key 7", b"\xff7")]
    said = _run("replay", dead, *to)
    assert f"sent 1 to {topic}: letters 1\n1 were replayed before" in said
    both = [(0, b"key 4", b"\xff4"), (1, b"key 7", b"\xff7")]
    assert _held(kafka.bootstrap, topic) == both
    assert _run("replay", dead, *to).startswith("nothing to send")
    assert _run("list", dead).splitlines()[1].split()[:2] == ["1", "1"]
    _run("replay", dead, *to, "--again", "--limit", "1")
    assert _held(kafka.bootstrap, topic) == [both[0], both[0], both[1]]


def test_letters_of_a_topic_go_to_the_topic_that_is_named(
    kafka: Any, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _make(kafka.bootstrap, topic, f"{topic}-dead")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    letters = [_letter("gone", 1), _letter("gone", 2, raw=None, payload="")]
    encoded = message_format("json").encoder(ERRORS_SCHEMA)  # as a KafkaSink writes them
    for message in encoded(pa.RecordBatch.from_pylist(letters, ERRORS_SCHEMA)).to_pylist():
        producer.produce(f"{topic}-dead", message)
    assert producer.flush(20) == 0
    dead = f"kafka://{kafka.bootstrap}/{topic}-dead"
    assert "nothing: a tombstone" in _run("show", dead, "1") + _run("show", dead, "2")
    with pytest.raises(BuildError, match=r"no topic 'gone'; name the topic .* --topic"):
        _run("replay", dead)
    assert f"sent 2 to {topic}" in _run("replay", dead, "--topic", topic)
    sent = {(key, value) for _, key, value in _held(kafka.bootstrap, topic)}
    assert sent == {(b"key 1", b"\xff1"), (b"key 2", None)}
    assert _run("replay", dead, "--topic", topic).startswith("nothing to send")
    assert list(tmp_path.glob(".headrace/dlq/*.json"))


def test_crash_between_commit_and_note_sends_nothing_twice(
    kafka: Any, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make(kafka.bootstrap, topic)
    dead = _directory(tmp_path / "dead", [_letter(topic, 1), _letter(topic, 2)])
    with monkeypatch.context() as crash:

        def cut(self: Replayed, *, committed: bool) -> None:
            raise KeyboardInterrupt

        crash.setattr(Replayed, "settle", cut)
        with pytest.raises(SystemExit):
            _run("replay", dead, "--bootstrap", kafka.bootstrap, "--limit", "1")
    pending = Replayed.read(tmp_path / "dead.replayed.json").pending
    assert pending is not None
    said = _run("replay", dead, "--bootstrap", kafka.bootstrap)
    assert f"sent 1 to {topic}: letters 2\n1 were replayed before" in said
    assert [key for _, key, _ in _held(kafka.bootstrap, topic)] == [b"key 2", b"key 1"]


def test_crash_before_the_commit_sends_all_afterwards(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    _make(kafka.bootstrap, topic)
    dead = _directory(tmp_path / "dead", [_letter(topic, 1), _letter(topic, 2)])
    _run("replay", dead, "--bootstrap", kafka.bootstrap, "--limit", "1")
    state = Replayed.read(tmp_path / "dead.replayed.json")
    state.begin(topic, ["an attempt that never got as far as its commit"])
    said = _run("replay", dead, "--bootstrap", kafka.bootstrap)
    assert f"sent 1 to {topic}: letters 2\n1 were replayed before" in said
    assert len(_held(kafka.bootstrap, topic)) == 2


def test_record_that_the_topic_refuses_is_named_and_nothing_is_sent(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    _make(kafka.bootstrap, topic, **{"max.message.bytes": "1000"})
    noise = random.Random(1).randbytes(10_000)
    letters = [_letter(topic, 1), _letter(topic, 2, raw=noise), _letter(topic, 3)]
    dead = _directory(tmp_path / "dead", letters)
    with pytest.raises(SinkError, match=r"Nothing was sent: letter 2: .*too large"):
        _run("replay", dead, "--bootstrap", kafka.bootstrap)
    assert _held(kafka.bootstrap, topic) == []
    assert "sent 1" in _run("replay", dead, "--bootstrap", kafka.bootstrap, "--limit", "1")


def test_letters_behind_deleted_and_foreign_records_are_listed(kafka: Any, topic: str) -> None:
    dead = f"{topic}-dead"
    _make(kafka.bootstrap, dead)
    rows = pa.RecordBatch.from_pylist([_letter(topic, n) for n in range(3)], ERRORS_SCHEMA)
    values = message_format("json").encoder(ERRORS_SCHEMA)(rows).to_pylist()
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for value in (values[0], b"not a letter", values[1], values[2]):
        producer.produce(dead, value, partition=0)
    producer.flush(20)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for gone in admin.delete_records([TopicPartition(dead, 0, 1)]).values():
        gone.result(20)
    listed = _run("list", f"kafka://{kafka.bootstrap}/{dead}")
    assert "1 records are left out" in listed
    assert "is not a dead letter" in listed
    assert [line.split()[0] for line in listed.splitlines() if "not JSON" in line] == ["2"]
