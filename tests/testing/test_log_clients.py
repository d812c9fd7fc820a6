"""The clients of a log in memory; `tests/services` compares them with brokers at length."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headrace.connectors.kafka import KafkaSink
from headrace.endpoints import SinkContext
from headrace.errors import BuildError, SetupError
from headrace.testing.log import Killed, Log


@pytest.fixture
def log() -> Log:
    made = Log()
    made.topic("t")
    return made


def begun(log: Log, **config: Any) -> Any:
    """A producer in a transaction."""
    producer = log.open("Producer", {"transactional.id": "a", **config})
    producer.init_transactions(1.0)
    producer.begin_transaction()
    return producer


def code(error: pytest.ExceptionInfo[KafkaException]) -> int:
    return int(error.value.args[0].code())


def test_topics_that_a_log_does_not_have_are_refused(log: Log) -> None:
    words = r"there is no topic 'absent' in Log\(memory://log-\d+\); there are \['t'\]"
    for asked in (
        lambda: log.append("absent", []),
        lambda: log.read("absent"),
        lambda: log.remove("absent"),
        lambda: log.remove_before("absent", 0, 1),
        lambda: log.open_transaction("absent"),
    ):
        with pytest.raises(BuildError, match=words):
            asked()


@pytest.mark.parametrize("number", [1, -1])
def test_partitions_that_a_topic_does_not_have_are_refused(log: Log, number: int) -> None:
    words = rf"there is no partition {number} of topic 't' in .*; it has 0 to 0"
    for asked in (
        lambda: log.append("t", [b"1"], partition=number),
        lambda: log.remove_before("t", number, 1),
        lambda: log.open_transaction("t", number),
    ):
        with pytest.raises(BuildError, match=words):
            asked()


def test_a_row_without_the_key_column_is_refused_and_no_row_is_added(log: Log) -> None:
    with pytest.raises(BuildError, match=r"key='k' is no column of .*; it has \['n'\]"):
        log.append("t", [{"k": "a"}, {"n": 1}], key="k")
    assert log.read("t") == []


def test_marks_take_offsets_and_a_reader_stops_at_an_open_transaction(log: Log) -> None:
    first = begun(log)
    first.produce("t", b"1", None, 0)
    first.commit_transaction(1.0)
    other = log.open_transaction("t", rows=[{"n": 2}])
    log.append("t", [{"n": 3}])
    consumer = log.open("Consumer", {"isolation.level": "read_committed"})
    place = TopicPartition("t", 0, 0)
    assert [record.offset for record in log.records("t")] == [0]
    assert consumer.get_watermark_offsets(place, timeout=1.0) == (0, 2)
    other.abort()
    assert [record.offset for record in log.records("t")] == [0, 3]
    assert [record.offset for record in log.records("t", "read_uncommitted")] == [0, 2, 3]
    assert consumer.get_watermark_offsets(place, timeout=1.0) == (0, 5)


def test_a_transaction_with_a_record_that_was_not_delivered_cannot_be_committed(log: Log) -> None:
    lost: list[Any] = []
    producer = begun(log, on_delivery=lambda error, _: lost.append(error.name()))
    log.fail("append")
    producer.produce("t", b"1", None, 0)
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(1.0)
    assert (lost, code(raised)) == (["_MSG_TIMED_OUT"], KafkaError._INCONSISTENT)


def test_a_producer_is_fenced_for_good(log: Log) -> None:
    older = begun(log)
    older.produce("t", b"1", None, 0)
    begun(log)
    for call in (older.commit_transaction, older.abort_transaction):
        with pytest.raises(KafkaException) as raised:
            call(1.0)
        assert code(raised) == KafkaError._FENCED
        assert raised.value.args[0].fatal()
    assert log.read("t", "read_uncommitted") == []


def test_a_kill_ends_every_producer_and_leaves_what_they_had_open(log: Log) -> None:
    killed = begun(log)
    killed.produce("t", b"1", None, 0)
    log.kill("commit")
    for call in (killed.commit_transaction, killed.abort_transaction):
        with pytest.raises(Killed):
            call(1.0)
    log.append("t", [b"2"])
    assert log.read("t") == []
    begun(log)
    assert log.read("t") == [2]


def test_a_request_fails_as_often_as_was_asked_for(log: Log) -> None:
    log.fail("init", "COORDINATOR_NOT_AVAILABLE", nth=2, times=2)
    codes = []
    for _ in range(4):
        try:
            begun(log)
            codes.append(0)
        except KafkaException as error:
            codes.append(error.args[0].code())
    assert codes == [0, *[KafkaError.COORDINATOR_NOT_AVAILABLE] * 2, 0]


def test_what_a_log_does_not_know_is_an_error(log: Log) -> None:
    with pytest.raises(AttributeError):
        log.open("Producer", {}).list_topics()
    with pytest.raises(BuildError, match="not 'before' 'begin'"):
        log.fail("begin")  # type: ignore[arg-type]
    with pytest.raises(BuildError, match="has no error 'OOPS'"):
        log.fail("commit", "OOPS")
    with pytest.raises(BuildError, match="give the record as bytes"):
        log.append("t", [{"n": b"1"}])


def test_a_log_that_is_gone_is_an_error_with_its_address(tmp_path: Path) -> None:
    sink = KafkaSink(Log().address, "out")
    with pytest.raises(SetupError, match=r"no log memory://log-\d+ in this process"):
        sink.publisher(SinkContext("job", "i", "out", pa.schema({"n": pa.int64()}), tmp_path))
