"""Consumers that are kept: where they stand, who gets which, and ranges read from what they give."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import KafkaError

from headrace.connectors.kafka.clients import Complaints
from headrace.connectors.kafka.reading import consumers, ranges
from headrace.connectors.kafka.reading.consumers import Seat
from headrace.connectors.kafka.reading.metadata import Needs
from headrace.connectors.kafka.reading.ranges import OnLoss, Range, records_of
from headrace.errors import InputError


@dataclass(frozen=True)
class Record:
    """A record at an offset, the end of the partition there, or word that the consumer is not let at it."""

    at: int
    end: bool = False
    lost: bool = False

    def __len__(self) -> int:
        return 1

    def offset(self) -> int:
        return self.at

    def error(self) -> Any:
        if self.lost:
            return KafkaError(KafkaError._AUTO_OFFSET_RESET)
        return End() if self.end else None

    def value(self) -> bytes:
        return b"%d" % self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, self.at


class End:
    def name(self) -> str:
        return "_PARTITION_EOF"


@dataclass
class Log:
    """A consumer over a partition with these offsets that ends at `end`."""

    offsets: Sequence[int]
    end: int
    sent: list[int] = field(default_factory=list)
    position: int = 0
    told: int = -1
    closed: bool = False

    def assign(self, partitions: Sequence[Any]) -> None:
        self.position, self.told = partitions[0].offset, -1
        self.sent.append(self.position)

    def unassign(self) -> None:
        self.sent.append(-1)

    def close(self) -> None:
        self.closed = True

    def consume(self, most: int, timeout: float) -> list[Record]:
        found = [Record(at) for at in self.offsets if at >= self.position][:most]
        if found:
            self.position = found[-1].at + 1
        if len(found) < most and self.told != self.end:
            self.told = self.end
            found.append(Record(self.end, end=True))
        return found

    def poll(self, timeout: float) -> None:
        raise AssertionError("it waits for a record")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Offsets with gaps: 3 and 7 to 11 are marks or aborted records."""
    made = Log([0, 1, 2, 4, 5, 6, 12, 13], 15)
    monkeypatch.setattr(consumers, "_SEATS", [])
    monkeypatch.setattr(consumers, "opened", lambda *_: made)
    return made


@dataclass
class Halting(Log):
    """One that halts once at `trip`, and whenever it comes to offsets that are `gone`, until it is sent anew."""

    trip: int | None = None
    gone: range = range(0)
    halted: bool = False

    def assign(self, partitions: Sequence[Any]) -> None:
        super().assign(partitions)
        self.halted = False

    def consume(self, most: int, timeout: float) -> list[Record]:
        ahead = [at for at in (self.trip, *self.gone) if at is not None and at >= self.position]
        if self.halted or not ahead:
            return [] if self.halted else super().consume(most, timeout)
        found = [Record(at) for at in self.offsets if self.position <= at < ahead[0]][:most]
        if found:
            self.position = found[-1].at + 1
        if len(found) == most:
            return found
        self.halted, self.trip = True, None
        return [*found, Record(-1, lost=True)]

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        return self.gone.stop, self.end


def halting(monkeypatch: pytest.MonkeyPatch, offsets: Sequence[int], **how: Any) -> Halting:
    made = Halting(offsets, offsets[-1] + 1, **how)
    monkeypatch.setattr(consumers, "_SEATS", [])
    monkeypatch.setattr(consumers, "opened", lambda *_: made)
    return made


def read(start: int, end: int, on_loss: OnLoss = "fail") -> list[int]:
    wanted = Range(("t", 0), start, end, Needs(), on_loss, patience_s=0.0)
    return [at for records in records_of({}, wanted) for at in records.offsets]


def test_a_range_ends_by_position(log: Log) -> None:
    assert read(0, 4) == [0, 1, 2]
    assert read(4, 7) == [4, 5, 6]
    assert read(7, 12) == []
    assert read(12, 15) == [12, 13]
    assert log.sent == [0]


def test_records_past_a_range_are_kept_for_the_next_ones(log: Log) -> None:
    assert read(0, 11) == [0, 1, 2, 4, 5, 6]
    (held,) = consumers._SEATS
    assert [record.at for record in held.surplus] == [12, 13]
    assert (held.floor, held.position) == (11, 15)
    assert read(11, 13) == [12]
    assert read(13, 14) == [13]
    assert read(14, 15) == []
    assert log.sent == [0]


def test_a_little_ahead_is_read_over_and_behind_is_sent(log: Log) -> None:
    assert read(0, 2) == [0, 1]
    assert read(5, 7) == [5, 6]
    assert log.sent == [0]
    assert read(1, 3) == [1, 2]
    assert log.sent == [0, 1]


def test_far_ahead_is_sent(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "_NEAR", 2)
    assert read(0, 2) == [0, 1]
    assert read(5, 7) == [5, 6]
    assert log.sent == [0, 5]


def test_an_error_ends_the_consumer(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr(ranges, "_round", broken)
    with pytest.raises(RuntimeError):
        read(0, 2)
    assert log.closed
    assert consumers._SEATS == []


def test_one_that_is_at_work_is_left_alone(log: Log) -> None:
    with (
        consumers.seat({}, ("t", 0), 0) as one,
        consumers.seat({}, ("t", 0), 0) as other,
    ):
        assert one is not other


def test_a_fork_begins_with_none(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    parents = Seat(log, Complaints(), "x")
    monkeypatch.setattr(consumers, "_SEATS", [parents])
    monkeypatch.setattr(consumers, "_INHERITED", [])
    monkeypatch.setattr(consumers, "_OWNER", -1)
    with consumers.seat({}, ("t", 0), 0) as held:
        assert held is not parents
    assert not log.closed


def test_records_that_come_with_an_error_are_not_read_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = halting(monkeypatch, range(20), trip=10)
    assert read(0, 5) == [*range(5)]
    assert read(5, 15) == [*range(5, 15)]
    assert read(15, 20) == [*range(15, 20)]
    assert log.sent == [0, 10]


def test_records_past_a_range_survive_an_error_that_comes_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = halting(monkeypatch, [0, 1, 2, 12, 13, 14, 15], trip=14)
    assert read(0, 11) == [0, 1, 2]
    assert read(11, 13) == [12]
    assert read(13, 16) == [13, 14, 15]
    assert log.sent == [0, 14]


def test_only_offsets_that_were_not_read_are_called_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    halting(monkeypatch, [*range(5), 8, 9], gone=range(5, 8))
    with pytest.raises(InputError, match="offsets 5 to 7 of t-0 were not read yet and are gone"):
        read(0, 10)


def test_what_is_gone_is_skipped_behind_records_that_came_with_the_word_of_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    halting(monkeypatch, [*range(5), 8, 9], gone=range(5, 8))
    assert read(0, 9, "skip") == [*range(5), 8]
    assert read(9, 10, "skip") == [9]
    assert "the offsets 5 to 7 of t-0 are gone" in caplog.text


def test_a_loss_behind_a_range_is_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Marks of a transaction at the end of the range let the consumer run into it."""
    log = halting(monkeypatch, [0, 1, 4, 8, 9], gone=range(5, 8))
    assert read(0, 4) == [0, 1]
    assert log.sent == [0, 5]
    assert read(4, 5) == [4]
    with pytest.raises(InputError, match="offsets 5 to 7 of t-0 were not read yet and are gone"):
        read(5, 10)


def test_a_record_that_is_given_again_is_dropped(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    consume = log.consume

    def again(most: int, timeout: float) -> list[Record]:
        log.position = max(0, log.position - 2)
        return consume(3, timeout)

    monkeypatch.setattr(log, "consume", again)
    assert read(0, 7) == [0, 1, 2, 4, 5, 6]
