"""Consumers that are kept: where they stand, who gets which, and ranges read from what they give."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headrace.connectors.kafka.clients import Complaints
from headrace.connectors.kafka.reading import consumers, ranges
from headrace.connectors.kafka.reading.consumers import Seat
from headrace.connectors.kafka.reading.metadata import Needs
from headrace.connectors.kafka.reading.ranges import Range, records_of


@dataclass(frozen=True)
class Record:
    """A record at an offset, or the end of the partition there."""

    at: int
    end: bool = False

    def __len__(self) -> int:
        return 1

    def offset(self) -> int:
        return self.at

    def error(self) -> Any:
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


def read(start: int, end: int) -> list[int]:
    wanted = Range(("t", 0), start, end, Needs(), patience_s=0.0)
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
