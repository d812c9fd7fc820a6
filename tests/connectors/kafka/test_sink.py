"""What a Kafka sink refuses before anything runs, and what it stages."""

import pickle
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._commit.spool import read_spool
from headrace.connectors.kafka.sink import KafkaSink
from headrace.connectors.kafka.writing.assignment import Assignment, recorded, written_down
from headrace.connectors.kafka.writing.encoding import RecordEncoder
from headrace.connectors.kafka.writing.partitioner import hashes
from headrace.connectors.kafka.writing.records import Routing, lane_chunks, lanes_with_rows
from headrace.connectors.kafka.writing.topics import NewTopic
from headrace.endpoints import SinkContext
from headrace.errors import BuildError, CheckpointMismatch, InputError, SinkRefused

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int64()),
        ("raw", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
    ]
)


def sink(**options: Any) -> KafkaSink:
    return KafkaSink("localhost:9092", **{"topic": "out", **options})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topic": None}, "topic= or topic_column="),
        ({"topic_column": "k"}, "topic= or topic_column="),
        ({"mode": "upsert"}, 'mode="upsert" needs key='),
        ({"mode": "replace"}, 'mode is "append" or "upsert"'),
        ({"lanes": 0}, "lanes is a number from 1 to 64"),
        ({"control_topic": "out"}, "a topic for markers alone, not 'out'"),
        ({"control_topic": ""}, "a topic for markers alone"),
        ({"create": 3}, "create is a kafka.NewTopic"),
        ({"format": "xml"}, "no message format 'xml'"),
        ({"transaction_timeout": 60}, "transaction_timeout must be a datetime.timedelta"),
        ({"options": {"transactional.id": "mine"}}, "made of checkpoint, sink and lane"),
        ({"options": {"enable.idempotence": "false"}}, "use guarantee="),
    ],
)
def test_choices_that_cannot_work(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BuildError, match=words):
        sink(**options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": "absent"}, "no column 'absent'"),
        ({"key": ("k", "n"), "key_format": "string"}, 'need key_format="json"'),
        ({"key": "tags"}, "is nested"),
        ({"topic": None, "topic_column": "n"}, "topic_column='n' is int64"),
        ({"partition_by": "k"}, "to go by a hash, use key="),
        ({"timestamp": "n"}, "timestamp='n' is int64"),
        ({"headers": "tags"}, "headers='tags' is list"),
        ({"headers": "absent"}, "there is no such column"),
    ],
)
def test_columns_that_cannot_be_what_they_should(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BuildError, match=words):
        sink(**options).validate(SCHEMA)


@pytest.mark.parametrize("wanted", [{"partitions": 0}, {"partitions": 1, "replication": 0}])
def test_a_topic_that_cannot_be_created(wanted: dict[str, int]) -> None:
    with pytest.raises(BuildError, match="at least one"):
        NewTopic(**wanted)


def test_secrets_are_not_shown() -> None:
    options = {"security.protocol": "SASL_SSL", "sasl.username": "u", "sasl.password": "hunter2"}
    shown = repr(sink(options=options))
    assert "hunter2" not in shown
    assert "***" in shown


def staged(one: KafkaSink, batch: pa.RecordBatch, spool: Path, task: str = "task") -> pa.Table:
    one.validate(batch.schema)
    context = SinkContext("job", uuid.uuid4().hex, "out", batch.schema, spool)
    stager = pickle.loads(pickle.dumps(one)).stager(context, 7, task)
    stager.write(batch)
    receipts = stager.close()
    return pa.concat_tables([read_spool(spool, receipt) for receipt in receipts])


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.record_batch(columns)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["ä", None]), ["ä".encode(), None]),
        (pa.array([17, -1]), [b"17", b"-1"]),
        (pa.array([b"\x00\xff", b""]), [b"\x00\xff", b""]),
        (pa.array([True, False]), [b"true", b"false"]),
        (pa.array(["a", "b"]).dictionary_encode(), [b"a", b"b"]),
    ],
)
def test_one_key_column_is_its_text(column: pa.Array, expected: list[Any], tmp_path: Path) -> None:
    rows = pa.record_batch({"k": column, "n": pa.array([1, 2])})
    assert staged(sink(key="k"), rows, tmp_path)["key"].to_pylist() == expected


def test_several_key_columns_are_an_object(tmp_path: Path) -> None:
    rows = batch_of(k=pa.array(["a"]), n=pa.array([1]), v=pa.array([2.5]))
    found = staged(sink(key=("k", "n")), rows, tmp_path)
    assert found["key"].to_pylist() == [b'{"k":"a","n":1}']
    assert found["value"].to_pylist() == [b'{"k":"a","n":1,"v":2.5}']


def test_hashes_are_of_the_key_and_rows_without_one_go_round(tmp_path: Path) -> None:
    rows = batch_of(k=pa.array(["a", None, "b", None]))
    found = staged(sink(key="k"), rows, tmp_path)
    numbers = found["hash"].to_pylist()
    assert [numbers[0], numbers[2]] == hashes(pa.array([b"a", b"b"])).tolist()
    assert numbers[3] - numbers[1] == 2


def test_timestamps_are_milliseconds(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=1_999)
    rows = batch_of(at=pa.array([at, None], pa.timestamp("us", "UTC")))
    found = staged(sink(timestamp="at"), rows, tmp_path)
    assert found["timestamp"].to_pylist() == [int(at.timestamp() * 1000), None]


def test_the_beginning_of_1970_is_not_now(tmp_path: Path) -> None:
    """The library's word for "now" is 0."""
    rows = batch_of(at=pa.array([0, -1], pa.timestamp("us", "UTC")))
    assert staged(sink(timestamp="at"), rows, tmp_path)["timestamp"].to_pylist() == [1, 1]


def test_upsert_needs_a_key_in_every_row(tmp_path: Path) -> None:
    rows = batch_of(k=pa.array(["a", None]), n=pa.array([1, 2]))
    with pytest.raises(InputError, match=r"'k' is null in .*'n': 2"):
        staged(sink(key="k", mode="upsert"), rows, tmp_path)


def test_upsert_turns_changes_into_records(tmp_path: Path) -> None:
    rows = batch_of(k=pa.array(["a"] * 4), change=pa.array(["+I", "-U", "+U", "-D"]))
    found = staged(sink(key="k", mode="upsert"), rows, tmp_path)
    assert found["value"].to_pylist() == [b'{"k":"a"}', b'{"k":"a"}', None]


def test_append_writes_changes_as_a_field(tmp_path: Path) -> None:
    rows = batch_of(k=pa.array(["a"]), change=pa.array(["-D"]))
    found = staged(sink(key="k"), rows, tmp_path)
    assert found["value"].to_pylist() == [b'{"k":"a","change":"-D"}']


def test_a_withdrawal_that_nothing_follows_is_a_tombstone(tmp_path: Path) -> None:
    """The row is gone under this key: a filter took its successor out, or the update changed the key."""
    rows = batch_of(
        k=pa.array(["a", "b", "c", "b", "a"]), change=pa.array(["-U", "-U", "-U", "+U", "-U"])
    )
    found = staged(sink(key="k", mode="upsert"), rows, tmp_path)
    assert found["key"].to_pylist() == [b"c", b"b", b"a"]
    assert found["value"].to_pylist() == [None, b'{"k":"b"}', None]


def test_a_row_that_moves_to_another_topic_leaves_a_tombstone(tmp_path: Path) -> None:
    rows = batch_of(to=pa.array(["x", "y"]), k=pa.array(["a", "a"]), change=pa.array(["-U", "+U"]))
    mover = KafkaSink("localhost:9092", topic_column="to", key="k", mode="upsert")
    assert staged(mover, rows, tmp_path)["value"].to_pylist() == [None, b'{"k":"a"}']


def test_topics_are_named_in_the_receipt(tmp_path: Path) -> None:
    rows = batch_of(to=pa.array(["b", "a", "b"]), n=pa.array([1, 2, 3]))
    one = KafkaSink("localhost:9092", topic_column="to")
    stager = one.stager(SinkContext("job", "i", "out", rows.schema, tmp_path), 0, "task")
    stager.write(rows)
    (receipt,) = stager.close()
    assert receipt.details == {"topics": ["a", "b"]}
    found = read_spool(tmp_path, receipt)
    assert found["value"].to_pylist() == [b'{"n":1}', b'{"n":2}', b'{"n":3}']


def test_a_row_that_names_no_topic(tmp_path: Path) -> None:
    rows = batch_of(to=pa.array(["b", None]), n=pa.array([1, 2]))
    with pytest.raises(InputError, match="names no topic in column 'to'"):
        staged(KafkaSink("localhost:9092", topic_column="to"), rows, tmp_path)


@pytest.mark.parametrize("name", ["", "a b", "ä", "..", "x" * 250])
def test_a_row_that_names_an_impossible_topic_is_refused_before_it_is_staged(
    name: str, tmp_path: Path
) -> None:
    """Once its epoch is durable nobody could make such a topic, and the job could never go on."""
    rows = batch_of(to=pa.array(["b", name]), n=pa.array([1, 2]))
    with pytest.raises(InputError, match="in column 'to', which no topic can be called"):
        staged(KafkaSink("localhost:9092", topic_column="to"), rows, tmp_path)


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"x"}])
def test_a_header_without_a_name_is_refused(header: Any, tmp_path: Path) -> None:
    kind = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    rows = batch_of(head=pa.array([[], None, [header]], kind))
    with pytest.raises(InputError, match="a header without a name in column 'head'"):
        staged(sink(headers="head"), rows, tmp_path)


@pytest.mark.parametrize("number", [-1, 2**40])
def test_a_partition_that_no_topic_has(number: int, tmp_path: Path) -> None:
    rows = batch_of(to=pa.array([None, number], pa.int64()))
    with pytest.raises(InputError, match=f"column 'to' names partition {number}"):
        staged(sink(partition_by="to"), rows, tmp_path)


def records(count: int, **more: Any) -> pa.Table:
    keys = pa.array([f"key-{number}".encode() for number in range(count)], pa.binary())
    return pa.table({"value": keys, "key": keys, "hash": pa.array(hashes(keys)), **more})


def test_every_row_is_in_one_lane_and_in_order() -> None:
    table, routing = records(1_000), Routing("out", 3, 5, {"out": 5})
    chunks = {lane: list(lane_chunks([table], routing, lane)) for lane in range(3)}
    keys = [key for found in chunks.values() for chunk in found for key in chunk.keys]
    assert sorted(keys) == sorted(table["key"].to_pylist())
    order = {key: at for at, key in enumerate(table["key"].to_pylist())}
    for lane, found in chunks.items():
        places = [order[key] for chunk in found for key in chunk.keys]
        assert places == sorted(places)
        assert {partition % 3 for chunk in found for partition in chunk.partitions} == {lane}
    assert lanes_with_rows([table], routing) == {0, 1, 2}


def test_a_topic_that_grew_changes_partitions_but_no_lane() -> None:
    table, before = records(200), Routing("out", 3, 3, {"out": 3})
    after = replace(before, counts={"out": 8})
    for lane in range(3):
        old = [key for chunk in lane_chunks([table], before, lane) for key in chunk.keys]
        new = [key for chunk in lane_chunks([table], after, lane) for key in chunk.keys]
        assert old == new
    grown = [one for chunk in lane_chunks([table], after, 0) for one in chunk.partitions]
    assert max(grown) > 2


def test_partitions_that_rows_name() -> None:
    named = pa.array([2, None, 0], pa.int32())
    table, routing = records(3, partition=named), Routing("out", 1, 3, {"out": 3})
    (chunk,) = lane_chunks([table], routing, 0)
    assert [chunk.partitions[0], chunk.partitions[2]] == [2, 0]
    words = r"names partition 2 .* topic 'out' has not so many: add partitions, since the rows at hand are staged"
    with pytest.raises(SinkRefused, match=words):
        list(lane_chunks([table], replace(routing, counts={"out": 2}), 0))


def test_chunks_of_sliced_columns_with_nulls() -> None:
    values = pa.array([b"x", None, b"", b"yz"], pa.binary())
    table = pa.table({"value": values, "key": values, "hash": pa.array(np.zeros(4, np.int32))})
    (chunk,) = lane_chunks([table.slice(1)], Routing("out", 1, 1, {"out": 1}), 0)
    assert chunk.values == [None, b"", b"yz"]
    assert chunk.keys == chunk.values


def test_what_the_first_start_wrote_down_stays(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    assert recorded(spool, 3) is None
    first = written_down(spool, Assignment(2, 6, 4))
    assert recorded(spool, None) == recorded(spool, 2) == first
    with pytest.raises(CheckpointMismatch, match="lanes=3, but this checkpoint was begun with 2"):
        recorded(spool, 3)


@pytest.mark.parametrize("kind", [None, "+X"])
def test_an_upsert_refuses_a_kind_of_change_that_it_does_not_know(kind) -> None:
    schema = pa.schema([("k", pa.string()), ("change", pa.string())])
    sink = KafkaSink("localhost:9092", "t", key="k", mode="upsert")
    layout = sink._layout
    batch = pa.record_batch([["a", "b"], ["+I", kind]], schema)
    with pytest.raises(SinkRefused, match="the column 'change' holds"):
        RecordEncoder(layout, schema)(batch, 0)


def test_arguments_that_mean_nothing_are_refused() -> None:
    with pytest.raises(BuildError, match=r"one of hr\.DeliveryGuarantee\.EXACTLY_ONCE"):
        KafkaSink("localhost:9092", "t", guarantee="atleast")
    with pytest.raises(BuildError, match="topic= or topic_column="):
        KafkaSink("localhost:9092", "")
    with pytest.raises(BuildError, match="use guarantee="):
        KafkaSink("localhost:9092", "t", options={"acks": "1"})
