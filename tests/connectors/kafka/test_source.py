"""A Kafka source as it is built: what is refused, what it shows of itself, and what travels."""

import pickle
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headrace.connectors.kafka import Committed, KafkaSource
from headrace.connectors.kafka.clients import client_config, opened
from headrace.errors import BuildError, SetupError

SCHEMA = pa.schema([("n", pa.int64()), ("offset", pa.int64())])


def built(**options: Any) -> KafkaSource:
    options.setdefault("topics", "orders")
    return KafkaSource("broker:9092", schema=SCHEMA, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pattern": "orders-.*"}, "either topics= or pattern="),
        ({"topics": None}, "either topics= or pattern="),
        ({"topics": []}, "one name or several"),
        ({"topics": ["a", "a"]}, "several different ones"),
        ({"topics": "orders-*"}, "there is pattern="),
        ({"topics": None, "pattern": "("}, "not a regular expression"),
        ({"start": datetime(2026, 1, 1)}, "start must be a datetime with a time zone"),
        ({"start": "newest"}, "start must be 'earliest', 'latest', a datetime"),
        ({"start": {"orders": 1}}, 'offsets by \\("topic", partition\\)'),
        ({"start": {("orders", 0): -1}}, "offsets of 0 or more"),
        ({"stop": "earliest"}, "stop must be None, 'latest'"),
        ({"stop": {}}, "stop must be None"),
        ({"metadata": "offset"}, "takes a list of fields"),
        ({"metadata": ["colour"]}, "no field 'colour'; there are topic, partition"),
        ({"metadata": ["offset"]}, "another name: metadata={\"kafka_offset\": 'offset'}"),
        ({"key_format": "json"}, "key_format must be one of raw, string"),
        ({"isolation": "dirty"}, "isolation must be one of"),
        ({"on_decode_error": "ignore"}, "fail, dead_letter, skip"),
        ({"on_data_loss": "ignore"}, "fail, skip"),
        ({"max_rows_per_epoch": 0}, "max_rows_per_epoch must be 1 or more"),
        ({"max_rows_per_epoch": "9"}, "max_rows_per_epoch must be 1 or more"),
        ({"min_rows": -1}, "min_rows must be 0 or more"),
        ({"discover_every": timedelta(0)}, "discover_every"),
        ({"group": ""}, "name of a consumer group"),
        ({"group": 7}, "name of a consumer group"),
        ({"format": "xml"}, "no message format 'xml'"),
        ({"options": {"enable.auto.commit": "true"}}, "offsets are in the checkpoint"),
        ({"options": {"isolation.level": "read_uncommitted"}}, "use isolation="),
        ({"options": {"group.id": "g"}}, "with group="),
        ({"options": {"auto.offset.reset": "earliest"}}, "use start="),
        ({"options": {"bootstrap.servers": "b:1"}}, "first argument"),
        ({"options": {"oauth_cb": print}}, "'oauth_cb' is a builtin_function"),
        ({"options": {"headrace.nonsense": "1"}}, "of ours there is"),
    ],
)
def test_what_cannot_work_is_refused_where_it_is_written(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(BuildError, match=said):
        built(**options)


@pytest.mark.parametrize("address", ["", "http://broker:9092"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(BuildError, match="broker"):
        KafkaSource(address, "orders", schema=SCHEMA)


def test_committed_says_what_otherwise() -> None:
    with pytest.raises(BuildError, match="'earliest', 'latest' or 'fail'"):
        Committed("g", otherwise="never")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "options", "refused"),
    [
        ("broker:9092", {}, True),
        ("127.0.0.1:9092,broker:9092", {}, True),
        ("127.0.0.1:9092", {}, False),
        ("localhost:9092,[::1]:9092", {}, False),
        ("broker:9092", {"security.protocol": "SASL_SSL"}, False),
        ("broker:9092", {"sasl.mechanism": "SCRAM-SHA-256"}, False),
        ("broker:9092", {"headrace.allow.cleartext.passwords": "true"}, False),
    ],
)
def test_a_password_is_not_sent_in_the_clear(
    address: str, options: dict[str, str], refused: bool
) -> None:
    plain = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    whole = {**plain, "sasl.username": "ada", "sasl.password": "env:PASSWORD", **options}
    if not refused:
        KafkaSource(address, "orders", schema=SCHEMA, options=whole)
        return
    with pytest.raises(BuildError, match="sends the password in the clear to broker"):
        KafkaSource(address, "orders", schema=SCHEMA, options=whole)


def test_secrets_are_not_shown() -> None:
    options = {"security.protocol": "SASL_SSL", "sasl.password": "hunter2"}
    shown = built(options=options)
    assert "hunter2" not in repr(shown)
    assert "hunter2" not in str(shown.signature())
    assert "'sasl.password': '***'" in repr(shown)
    by_reference = built(options={**options, "sasl.password": "file:/run/secret"})
    assert "file:/run/secret" in repr(by_reference)


def test_the_signature_is_about_topics_alone() -> None:
    first = built(topics=["b", "a"], start="latest", group="g")
    again = built(topics=["a", "b"], stop=datetime(2026, 1, 1, tzinfo=UTC), metadata=["key"])
    assert first.signature() == again.signature()
    assert first.signature() != built(topics=["a"]).signature()
    assert first.signature() != built(topics=None, pattern="a|b").signature()


def test_metadata_columns_follow_those_of_the_schema() -> None:
    found = built(metadata={"at": "timestamp", "who": "key"}, key_format="string").schema
    assert found.names == ["n", "offset", "at", "who"]
    assert found.field("at").type == pa.timestamp("us", "UTC")
    assert found.field("who").type == pa.string()
    assert built(metadata=["key"]).schema.field("key").type == pa.binary()


def test_limits_reach_the_planner() -> None:
    limited = built(max_rows_per_epoch=500, min_rows=10, max_delay=timedelta(seconds=3))
    assert (limited.max_rows, limited.min_rows, limited.patience_us) == (500, 10, 3_000_000)
    assert (built().max_rows, built().min_rows) == (None, 0)


def test_a_source_travels_without_its_decoders() -> None:
    shipped = built()
    shipped._reading_of("orders")
    copy = pickle.loads(pickle.dumps(shipped))
    assert (repr(copy), copy._readings) == (repr(shipped), {})


def test_the_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(SetupError, match=r"pip install 'headrace\[kafka\]'"):
        built()


def test_a_configuration_that_is_refused_does_not_show_secrets() -> None:
    config = client_config("broker:9092", {"sasl.password": "hunter2", "sasl.mechanism": "hunter2"})
    with pytest.raises(SetupError, match="cannot be opened") as refused:
        opened("Consumer", {**config, "group.id": "g", "security.protocol": "hunter2"})
    assert "hunter2" not in str(refused.value)
    with pytest.raises(SetupError, match="NOWHERE is not set"):
        client_config("broker:9092", {"sasl.password": "env:NOWHERE"})


@pytest.mark.parametrize(
    ("options", "columns", "read"),
    [
        ({}, ["n"], ["n"]),
        ({}, [], ["n"]),
        ({"metadata": ["key", "partition"]}, ["offset", "key"], ["offset", "key"]),
        ({"metadata": ["key", "partition"]}, ["key"], ["n", "key"]),
        ({"format": "csv", "metadata": ["key"]}, ["n"], ["n", "offset"]),
    ],
)
def test_what_nobody_looks_at_is_not_made(
    options: dict[str, Any], columns: list[str], read: list[str]
) -> None:
    source = built(**options)
    found = source.narrowed(columns, timestamps=False)
    assert found.schema.names == read
    assert found.signature() == source.signature()
    assert source.schema.names[:2] == ["n", "offset"]


@pytest.mark.parametrize("timestamps", [True, False])
@pytest.mark.parametrize("column", ["timestamp", "partition"])
def test_timestamps_are_read_where_they_are_asked_for(column: str, *, timestamps: bool) -> None:
    source = built(metadata=["timestamp", "partition"]).narrowed([column], timestamps=timestamps)
    reading = source._reading_of("orders")
    assert reading.stamped is timestamps
    assert reading.needs.stamps is (timestamps or column == "timestamp")
