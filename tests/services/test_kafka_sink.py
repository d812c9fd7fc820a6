"""What stands in a topic when rows were written to it: keys, partitions, headers, timestamps, tombstones."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

import headrace as hr
from headrace.connectors.kafka import KafkaSink, NewTopic
from headrace.connectors.kafka.writing import publishing
from headrace.errors import CheckpointDamaged, CheckpointMismatch, SinkRefused
from tests.connectors.kafka.publishing_run import SCHEMA, Run, rows
from tests.services.kafka_sinks import committed, values

pytestmark = pytest.mark.services

THREE = NewTopic(3, 1)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Makes runs, and ends them."""
    runs: list[Run] = []

    def make(sink: KafkaSink, schema: pa.Schema = SCHEMA, **more: Any) -> Run:
        sink.validate(schema)
        runs.append(Run(sink, tmp_path / str(len(runs)), schema, **more))
        return runs[-1]

    yield make
    for run in runs:
        run.close()


def published(run: Run, *batches: pa.RecordBatch) -> None:
    """One epoch with these tasks."""
    run.stage(0, *batches)
    run.publish(run.start(), 0)


def test_keys_are_where_other_clients_look_for_them(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    published(
        made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE)), rows(0, 500, range(97))
    )
    ours = {one.key(): one.partition() for one in committed(kafka.bootstrap, topic)}
    theirs: dict[bytes, int] = {}
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "partitioner": "murmur2_random"})
    for key in ours:
        producer.produce(
            topic, b"", key, on_delivery=lambda _, one: theirs.update({one.key(): one.partition()})
        )
    producer.flush(20)
    assert len(ours) == 97
    assert ours == theirs


def test_order_per_key_over_lanes_and_epochs(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE))
    publisher = run.start()
    for epoch in range(3):
        run.stage(epoch, rows(epoch * 1_000, 1_000))
        run.publish(publisher, epoch)
    by_key = defaultdict(list)
    for one in values(committed(kafka.bootstrap, topic)):
        by_key[one["k"]].append(one["n"])
    assert sorted(n for numbers in by_key.values() for n in numbers) == list(range(3_000))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


def test_rows_without_a_key_use_all_partitions(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    published(made(KafkaSink(kafka.bootstrap, topic, create=THREE)), rows(0, 300))
    found = committed(kafka.bootstrap, topic)
    counted = [sum(one.partition() == number for one in found) for number in range(3)]
    assert counted == [100, 100, 100]
    assert {one.key() for one in found} == {None}


def test_headers_timestamps_partitions_and_topics_come_from_columns(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    instant = datetime(2026, 3, 1, 12, 0, 0, 123_000, tzinfo=UTC)
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("to", pa.string()),
            ("part", pa.int32()),
            ("head", pa.map_(pa.string(), pa.binary())),
        ]
    )
    sink = KafkaSink(
        kafka.bootstrap,
        topic_column="to",
        key="n",
        timestamp="at",
        partition_by="part",
        headers="head",
        create=THREE,
        lanes=2,
    )
    run = made(sink, schema)
    other = f"{topic}-other"
    columns = [
        [1, 2, 3],
        [instant, None, instant],
        [topic, other, topic],
        [2, 1, None],
        [[("trace", b"\x00\x01"), ("trace", b"2")], [], None],
    ]
    before = time.time() * 1000
    published(
        run,
        pa.record_batch(
            [pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)], schema=schema
        ),
    )
    first, second = committed(kafka.bootstrap, topic), committed(kafka.bootstrap, other)
    by_key = {one.key(): one for one in [*first, *second]}
    assert [len(first), len(second)] == [2, 1]
    assert by_key[b"1"].partition() == 2
    assert by_key[b"2"].partition() == 1
    assert by_key[b"1"].headers() == [("trace", b"\x00\x01"), ("trace", b"2")]
    assert by_key[b"1"].timestamp()[1] == instant.timestamp() * 1000
    assert by_key[b"2"].timestamp()[1] >= before - 1
    assert set(json.loads(by_key[b"1"].value())) == {"n", "at", "part"}


def test_upsert_writes_values_and_tombstones(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int64()), ("change", pa.string())])
    create = NewTopic(1, 1, {"cleanup.policy": "compact"})
    run = made(KafkaSink(kafka.bootstrap, topic, key="k", mode="upsert", create=create), schema)
    changes = [("a", 1, "+I"), ("b", 2, "+I"), ("a", 1, "-U"), ("a", 3, "+U"), ("b", 2, "-D")]
    published(
        run,
        pa.RecordBatch.from_pylist(
            [dict(zip(schema.names, row, strict=True)) for row in changes], schema=schema
        ),
    )
    found = committed(kafka.bootstrap, topic)
    assert [one.key() for one in found] == [b"a", b"b", b"a", b"b"]
    assert values(found) == [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}, None]
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    settings = admin.describe_configs([resource])[resource].result(20)
    assert settings["cleanup.policy"].value == "compact"


@pytest.mark.parametrize(
    "guarantee", [hr.DeliveryGuarantee.AT_LEAST_ONCE, hr.DeliveryGuarantee.NONE]
)
def test_lesser_guarantees_use_no_transactions(
    kafka: Any, topic: str, made: Callable[..., Run], guarantee: hr.DeliveryGuarantee
) -> None:
    sink = KafkaSink(
        kafka.bootstrap,
        topic,
        key="k",
        guarantee=guarantee,
        create=THREE,
        control_topic=f"{topic}-markers",
    )
    run = made(sink)
    published(run, rows(0, 100))
    run.publish(run.start(), 0)
    numbers = sorted(one["n"] for one in values(committed(kafka.bootstrap, topic)))
    assert numbers == sorted([*range(100), *range(100)])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assert f"{topic}-markers" not in admin.list_topics(timeout=20).topics


def test_a_missing_topic_is_refused_at_the_start(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    run = made(KafkaSink(kafka.bootstrap, topic))
    with pytest.raises(SinkRefused, match=r"there is no topic .*create=kafka.NewTopic"):
        run.start()
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assert topic not in admin.list_topics(timeout=20).topics


def test_a_topic_that_rows_name_and_nobody_made_is_refused(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    run = made(KafkaSink(kafka.bootstrap, topic_column="k"))
    named = pa.record_batch([pa.array([f"{topic}-nowhere"]), pa.array([1])], schema=SCHEMA)
    with pytest.raises(SinkRefused, match=f"there is no topic '{topic}-nowhere'"):
        published(run, named)


def test_a_row_that_is_too_large_is_named_and_nothing_of_its_epoch_shows(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    create = NewTopic(1, 1, {"max.message.bytes": "20000"})
    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=create))
    large = pa.record_batch([pa.array(["a" * 30_000]), pa.array([1])], schema=SCHEMA)
    run.stage(0, rows(0, 5_000))
    run.stage(1, rows(5_000, 10), large)
    publisher = run.start()
    run.publish(publisher, 0)
    with pytest.raises(
        SinkRefused, match=r"with key b'aaa.* is 60,0\d\d bytes.*takes 20,000.*max.message.bytes"
    ):
        run.publish(publisher, 1)
    assert len(committed(kafka.bootstrap, topic)) == 5_000


def test_a_topic_that_grows_between_two_attempts_doubles_nothing(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    """A row keeps its lane, whatever partition it would have today."""
    from confluent_kafka.admin import NewPartitions

    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE))
    run.stage(0, rows(0, 700, range(50)))
    publisher = run.start()
    for lane in publisher._lanes[1:]:  # type: ignore[attr-defined]
        lane.publish = _away
    with pytest.raises(ConnectionError):
        run.publish(publisher, 0)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_partitions([NewPartitions(topic, 7)])[topic].result(20)
    _wait(
        lambda: len(admin.describe_topics(TopicCollection([topic]))[topic].result().partitions) == 7
    )
    run.publish(run.start(), 0)
    found = committed(kafka.bootstrap, topic)
    assert sorted(one["n"] for one in values(found)) == list(range(700))
    assert {one.partition() for one in found} > {0, 1, 2}


def test_lanes_are_fixed_at_the_first_start(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE, lanes=2))
    published(run, rows(0, 10))
    run.publishers[0].discard(frozenset())
    assert [one.name for one in run.spool.iterdir()] == ["lanes.json"]
    run.sink = KafkaSink(kafka.bootstrap, topic, key="k", lanes=3)
    with pytest.raises(CheckpointMismatch, match="write lanes=2"):
        run.start()


def test_large_epochs_are_published_by_the_workers(
    kafka: Any, topic: str, made: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "_MANY_ROWS", 1_000)
    spread: list[int] = []

    def on_workers(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[Any]:
        spread.append(len(arguments))
        return [function(argument) for argument in arguments]

    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE), spread=on_workers)
    publisher = run.start()
    for epoch, count in enumerate([2_000, 10, 2_000, 0, 2_000]):
        run.stage(epoch, rows(epoch * 2_000, count))
        run.publish(publisher, epoch)
    # Once more, as after a crash before the note.
    run.publish(publisher, 4)
    assert spread == [3, 3, 3, 3]
    numbers = [one["n"] for one in values(committed(kafka.bootstrap, topic))]
    expected = [*range(2_000), *range(2_000, 2_010), *range(4_000, 6_000), *range(8_000, 10_000)]
    assert sorted(numbers) == expected


def test_altered_rows_are_never_published(kafka: Any, topic: str, made: Callable[..., Run]) -> None:
    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE))
    (receipt,) = run.stage(0, rows(0, 100))
    file = run.spool / receipt.path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(CheckpointDamaged, match="does not match its checksum"):
        run.publish(run.start(), 0)
    assert committed(kafka.bootstrap, topic) == []


def test_the_spool_is_removed_behind_the_next_epoch(
    kafka: Any, topic: str, made: Callable[..., Run]
) -> None:
    run = made(KafkaSink(kafka.bootstrap, topic, key="k", create=THREE))
    publisher = run.start()
    for epoch in range(2):
        run.stage(epoch, rows(epoch * 10, 10))
        run.publish(publisher, epoch)
    assert sorted(one.name for one in run.spool.iterdir()) == ["000000000001", "lanes.json"]


def _away(epoch: int, chunks: object) -> None:
    raise ConnectionError("lanes 1 and 2 do not get to it")


def _wait(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)
