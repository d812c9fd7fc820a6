"""The marker of a lane is found whatever others do in the same partition of the control topic."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from headrace.connectors.kafka.writing import markers
from headrace.connectors.kafka.writing.markers import Marker, MarkerPlace, read_marker
from headrace.errors import SinkError
from headrace.testing.log import Log

MARKER = Marker("incarnation", "out", 0, lanes=1, fence=1, epoch=0)
NEXT = replace(MARKER, epoch=1)
PLACE = MarkerPlace("control", 0, MARKER.key)


@dataclass
class Record:
    """What the library gives; without a marker it is the end of the partition."""

    at: int
    marker: Marker | None = None
    owner: bytes = MARKER.key

    def error(self) -> KafkaError | None:
        return None if self.marker else KafkaError(KafkaError._PARTITION_EOF)

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes:
        return self.owner

    def value(self) -> bytes:
        assert self.marker is not None
        return self.marker.to_bytes()


class Scripted:
    """A consumer that gives these answers in turn, then none."""

    def __init__(self, end: int, answers: list[list[Record]]) -> None:
        self.end, self.answers = end, answers

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, self.end

    def assign(self, _: object) -> None:
        """From the beginning or not: the answers are what they are."""

    def consume(self, *_: object) -> list[Record]:
        return self.answers.pop(0) if self.answers else []

    def close(self) -> None:
        """Nothing to close."""


Read = Callable[..., Marker | None]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    def reading(
        end: int, *, decided: list[list[Record]], undecided: list[list[Record]]
    ) -> Marker | None:
        answers = {"read_committed": decided, "read_uncommitted": undecided}

        def opened(_: str, config: dict[str, Any]) -> Scripted:
            return Scripted(end, answers[config["isolation.level"]])

        monkeypatch.setattr(markers, "opened", opened)
        return read_marker("nowhere:9092", {}, PLACE, 0.2)

    return reading


def test_a_marker_that_follows_the_end_in_the_same_answer_is_seen(read: Read) -> None:
    """A transaction of others ends between two fetches; the library gives both at once."""
    decided = [[Record(0, MARKER), Record(2), Record(3, NEXT)], [Record(5)]]
    assert read(5, decided=decided, undecided=[[Record(5)]]) == NEXT
    decided = [[Record(0, MARKER), Record(2), Record(3, NEXT)], [Record(6)]]
    undecided = [[Record(5, MARKER, b"other"), Record(6)]]
    assert read(6, decided=decided, undecided=undecided) == NEXT


def test_an_end_that_lags_is_not_taken_for_the_end(read: Read) -> None:
    """A broker that has just become the leader may not know yet how far the partition goes."""
    decided = [[Record(0, MARKER), Record(2)], [Record(3, NEXT), Record(5)]]
    undecided = [[Record(2)], [Record(3, NEXT), Record(5)]]
    assert read(5, decided=decided, undecided=undecided) == NEXT


@pytest.fixture
def log() -> Log:
    made = Log()
    made.topic("control")
    return made


def write(log: Log, marker: Marker, *, commit: bool = True) -> None:
    producer = log.open("Producer", {"transactional.id": marker.key.decode()})
    producer.init_transactions(1.0)
    producer.begin_transaction()
    producer.produce("control", marker.to_bytes(), marker.key, 0)
    producer.flush(1.0)
    if commit:
        producer.commit_transaction(1.0)


def found(log: Log) -> Marker | None:
    return read_marker(log.address, {}, PLACE, 0.1)


def test_the_last_committed_marker_of_the_lane_counts(log: Log) -> None:
    assert found(log) is None
    write(log, MARKER)
    write(log, NEXT)
    write(log, replace(NEXT, lane=1, epoch=7))
    write(log, replace(NEXT, epoch=8), commit=False)
    log.expire()
    assert found(log) == NEXT


def test_others_are_not_waited_for(log: Log) -> None:
    write(log, MARKER)
    log.open_transaction("control")
    write(log, replace(NEXT, lane=1))
    assert found(log) == MARKER


def test_a_marker_after_an_open_transaction_of_others_is_waited_for(log: Log) -> None:
    write(log, MARKER)
    log.open_transaction("control").abort_after(waits=3)
    write(log, NEXT)
    assert found(log) == NEXT


def test_a_marker_that_stays_hidden_is_no_missing_one(log: Log) -> None:
    write(log, MARKER)
    log.open_transaction("control")
    write(log, NEXT)
    with pytest.raises(SinkError, match="a transaction is open before our last marker"):
        found(log)


def test_a_marker_that_cannot_be_read_is_an_error_to_repeat(log: Log) -> None:
    write(log, MARKER)
    log.fail("fetch", "BROKER_NOT_AVAILABLE")
    with pytest.raises(
        SinkError, match=r"markers in topic 'control' at memory://\S+ cannot be read"
    ):
        found(log)
    assert found(log) == MARKER
