"""What records become: rows, metadata, dead letters; jobs over a topic; offsets of a group; secrets."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.kafka import KafkaSource
from headrace.connectors.memory import MemorySink
from headrace.errors import InputError, SetupError
from headrace.testing import run_local
from tests.services.kafka_topics import (
    SCHEMA,
    Topics,
    batches,
    numbers,
    source,
    until,
    watching,
)

pytestmark = pytest.mark.services

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
MILLIS = int(MOMENT.timestamp() * 1000)


@pytest.fixture
def topics(kafka: Any) -> Topics:
    return Topics(kafka.bootstrap)


def test_metadata_are_columns_behind_those_of_the_schema(
    kafka: Any, topics: Topics, topic: str
) -> None:
    topics.make(topic, 2)
    parts = {"key": b"k", "timestamp": MILLIS, "headers": [("trace", b"\x00"), ("none", None)]}
    topics.send(topic, [1], 1, **parts)
    topics.send(topic, [2], 1, timestamp=MILLIS + 1)
    fields = ["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "headers"]
    watched = source(kafka, topic, metadata=fields)
    (found,) = batches(watched, f"{topic}-1", 0, 2)
    assert found.batch.schema == watched.schema
    first, second = found.batch.to_pylist()
    assert first == {
        "n": 1,
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": MOMENT,
        "timestamp_type": "create",
        "key": b"k",
        "headers": [{"key": "trace", "value": b"\x00"}, {"key": "none", "value": None}],
    }
    assert (second["key"], second["headers"]) == (None, None)
    assert found.timestamps is not None
    assert found.timestamps.tolist() == [MILLIS * 1000, MILLIS * 1000 + 1000]


def test_keys_are_text_by_choice_and_columns_have_other_names(
    kafka: Any, topics: Topics, topic: str
) -> None:
    topics.make(topic)
    for n, key in enumerate((b"ok", b"\xff", None)):
        topics.send(topic, [n], key=key)
    options = {"metadata": {"who": "key"}, "key_format": "string"}
    lenient = source(kafka, topic, on_decode_error="dead_letter", **options)
    (found,) = batches(lenient, f"{topic}-0", 0, 3)
    assert found.batch.to_pylist() == [{"n": 0, "who": "ok"}, {"n": 2, "who": None}]
    assert [(bad.offset, bad.cause, bad.raw_key) for bad in found.dead] == [
        (1, "its key is not UTF-8", b"\xff")
    ]
    with pytest.raises(InputError, match="offset 1: its key is not UTF-8"):
        batches(source(kafka, topic, **options), f"{topic}-0", 0, 3)


@pytest.fixture
def spoilt(topics: Topics, topic: str) -> str:
    """Of 30 records every tenth is no row."""
    topics.make(topic)
    for n in range(30):
        topics.send(topic, [b'{"n": "word"}' if n % 10 == 5 else n], key=b"k%d" % n)
    return topic


def test_a_record_that_is_no_row_fails_with_its_place(kafka: Any, spoilt: str) -> None:
    said = rf"topic '{spoilt}', partition 0, offset 5: .*word"
    with pytest.raises(InputError, match=said):
        batches(source(kafka, spoilt), f"{spoilt}-0", 0, 30)
    assert numbers(batches(source(kafka, spoilt), f"{spoilt}-0", 0, 5)) == [0, 1, 2, 3, 4]


def test_records_that_are_no_rows_become_dead_letters(kafka: Any, spoilt: str) -> None:
    lenient = source(kafka, spoilt, on_decode_error="dead_letter")
    found = batches(lenient, f"{spoilt}-0", 0, 30)
    assert numbers(found) == [n for n in range(30) if n % 10 != 5]
    assert [offset for batch in found for offset in batch.offsets] == numbers(found)
    dead = [bad for batch in found for bad in batch.dead]
    assert [(bad.partition, bad.offset, bad.raw, bad.raw_key, bad.payload) for bad in dead] == [
        (f"{spoilt}-0", n, b'{"n": "word"}', b"k%d" % n, '{"n": "word"}') for n in (5, 15, 25)
    ]


def test_records_that_are_no_rows_are_skipped_and_counted(kafka: Any, spoilt: str) -> None:
    found = batches(source(kafka, spoilt, on_decode_error="skip"), f"{spoilt}-0", 0, 30)
    assert numbers(found) == [n for n in range(30) if n % 10 != 5]
    assert (sum(batch.skipped for batch in found), [b.dead for b in found]) == (3, [()])


def run(watched: KafkaSource, **options: Any) -> tuple[pa.Table, pa.Table]:
    """The rows and the dead letters of a job that only reads."""
    env = hr.Environment("reads")
    rows, errors = MemorySink(), MemorySink()
    stream = env.from_source(watched, uid="in")
    stream.sink_to(rows, uid="out")
    stream.errors.sink_to(errors, uid="errors")
    assert run_local(env, **options).finished
    return rows.to_arrow(), errors.to_arrow()


def test_a_job_reads_every_record_once_whatever_crashes(
    kafka: Any, topics: Topics, topic: str
) -> None:
    topics.make(topic, 2)
    for partition in (0, 1):
        topics.transact(topic, range(partition * 1000, partition * 1000 + 200), partition)
        topics.transact(topic, range(9000, 9050), partition, commit=False)
    bounded = source(kafka, topic, stop="latest", max_rows_per_epoch=90)
    rows, _ = run(bounded, tasks=2, crashes={(1, "task"), (2, "staged"), (3, "durable")})
    assert sorted(rows["n"].to_pylist()) == [*range(200), *range(1000, 1200)]


def test_dead_letters_of_a_job_are_counted_exactly(kafka: Any, spoilt: str) -> None:
    lenient = source(kafka, spoilt, stop="latest", on_decode_error="dead_letter")
    rows, errors = run(lenient, tasks=2, crashes={(0, "staged")})
    assert (rows.num_rows, errors["offset"].to_pylist()) == (27, [5, 15, 25])
    assert set(errors["raw"].to_pylist()) == {b'{"n": "word"}'}


def test_each_partition_has_its_own_watermark(kafka: Any, topics: Topics, topic: str) -> None:
    """Partition 0 is a hundred seconds ahead; with one watermark the rows of partition 1 would be late."""
    topics.make(topic, 2)
    for n in range(10):
        ahead = 100_000 if n % 2 == 0 else 0
        topics.send(topic, [n], n % 2, timestamp=MILLIS + n * 1000 + ahead)
    env = hr.Environment("counts")
    counts = MemorySink()
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(0)).with_record_timestamps()
    two_each = source(kafka, topic, stop="latest", max_rows_per_epoch=4)
    stream = env.from_source(two_each, watermarks=strategy, uid="in")
    windows = stream.key_by("n").window(hr.windows.Tumbling(timedelta(seconds=1)))
    windows.aggregate(count=hr.count(), uid="count").sink_to(counts, uid="out")
    result = run_local(env)
    assert result.finished
    assert len(result.epochs) > 3
    assert sorted(row["n"] for row in counts.to_pylist()) == [*range(10)]


def test_offsets_are_committed_to_the_group(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic, 2)
    topics.send(topic, range(7))
    run(source(kafka, topic, stop="latest", group=f"{topic}-a"))
    assert topics.committed(f"{topic}-a", topic, 2) == [7, 0]
    with watching(source(kafka, topic, group=f"{topic}-b"), tmp_path) as enumerator:
        for to in (2, 5):
            enumerator.durable({f"{topic}-0": to})
            until(lambda: topics.committed(f"{topic}-b", topic, 1) == [to])  # noqa: B023


def test_a_secure_broker_is_read_with_secrets_by_reference(
    secure_kafka: Any, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = secure_kafka.secure_options("SCRAM-SHA-256")
    secret = options["sasl.password"]
    secure = Topics(secure_kafka.secure_address, options)
    secure.make(topic)
    secure.send(topic, [1, 2])
    monkeypatch.setenv("KAFKA_PASSWORD", secret)
    by_reference = {**options, "sasl.password": "env:KAFKA_PASSWORD"}
    watched = KafkaSource(
        secure_kafka.secure_address, topic, schema=SCHEMA, options=by_reference, group="g"
    )
    with watching(watched, tmp_path) as enumerator:
        assert enumerator.spans()[f"{topic}-0"].end == 2
    assert numbers(batches(watched, f"{topic}-0", 0, 2)) == [1, 2]
    seen = repr(watched) + "".join(p.read_text() for p in tmp_path.rglob("*") if p.is_file())
    assert secret not in seen

    monkeypatch.setenv("KAFKA_PASSWORD", "wrong-" + secret)
    with pytest.raises(SetupError, match=r"(?i)authentication") as refused:
        watched.enumerator(tmp_path)
    assert secret not in str(refused.value)
    began = time.monotonic()
    with pytest.raises(SetupError, match=r"(?i)cannot be read: .*authentication"):
        batches(watched, f"{topic}-0", 0, 2)
    assert time.monotonic() - began < 15
