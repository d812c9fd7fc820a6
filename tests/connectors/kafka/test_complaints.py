"""What a client complains of: when it is believed that brokers refuse us, and when they are only away."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.connectors.kafka import clients
from headrace.connectors.kafka.clients import REFUSED_S, Complaints
from headrace.connectors.kafka.reading import consumers, ranges
from headrace.connectors.kafka.reading.consumers import Seat
from headrace.connectors.kafka.reading.metadata import Needs, Records
from headrace.connectors.kafka.reading.ranges import Range, records_of
from headrace.connectors.kafka.writing.failures import sink_failure
from headrace.connectors.kafka.writing.sender import Sender
from headrace.errors import EngineError, SetupError, SinkRefused
from headrace.testing.log import Log

CUT_OFF = KafkaError(KafkaError._SSL, "SSL handshake failed: Disconnected")
WRONG_PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "Invalid username or password")
UNTRUSTED = KafkaError(KafkaError._SSL, "SSL routines::certificate verify failed")
AWAY = KafkaError(KafkaError._TRANSPORT, "Connection refused")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (clients, ranges):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def told(clock: Clock, complaints: Complaints, *errors: Any, every_s: float = 0.5) -> None:
    for error in errors:
        clock.now += every_s
        complaints(error)


def test_a_refusal_that_repeats_is_believed(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, *[WRONG_PASSWORD, ALL_DOWN] * 4)
    assert complaints.refusal() is None
    told(clock, complaints, *[WRONG_PASSWORD, ALL_DOWN] * 2)
    assert complaints.refusal() == "Invalid username or password (AUTHENTICATION)"


def test_what_a_broker_answered_counts_more_than_what_connections_say(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, AWAY, ALL_DOWN)
    refused = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert "TOPIC_AUTHORIZATION_FAILED" in complaints.why(refused)
    assert "Connection refused" in complaints.why(TIMED_OUT)


def test_a_refusal_that_something_else_followed_is_not(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, *[CUT_OFF] * 20, AWAY)
    assert complaints.refusal() is None
    assert complaints.final is None
    assert complaints.why("no answer") == "Connection refused (TRANSPORT)"
    told(clock, complaints, *[CUT_OFF] * 5)
    assert complaints.refusal() is None
    assert complaints.final is not None


def test_a_refusal_that_does_not_repeat_is_not_believed(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, AWAY, CUT_OFF, *[ALL_DOWN] * 100)
    assert complaints.refusal() is None


def test_one_that_is_heard_only_at_the_end_of_a_wait_is_believed_if_it_was_all(
    clock: Clock,
) -> None:
    """A client that waits for an answer hears of nothing meanwhile."""
    alone, once, mixed = Complaints(), Complaints(), Complaints()
    clock.now += 10
    told(clock, alone, *[WRONG_PASSWORD, ALL_DOWN] * 10, every_s=0)
    told(clock, once, CUT_OFF, ALL_DOWN, every_s=0)
    told(clock, mixed, AWAY, *[CUT_OFF] * 10, every_s=0)
    assert alone.refusal() is not None
    assert once.refusal() is None
    assert mixed.refusal() is None


def test_an_answer_in_between_begins_anew(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, *[CUT_OFF] * 9)
    complaints.forget()
    told(clock, complaints, *[CUT_OFF] * 9)
    assert complaints.refusal() is None


def test_a_certificate_is_refused_in_two_ways(clock: Clock) -> None:
    """The library has the same failure as one of the connection now and then."""
    complaints = Complaints()
    echo = KafkaError(KafkaError._TRANSPORT, "error:0A000086:" + UNTRUSTED.str())
    told(clock, complaints, *[echo, UNTRUSTED, UNTRUSTED, echo] * 4)
    assert "certificate verify failed (SSL)" in (complaints.refusal() or "")


def test_a_sink_asks_brokers_again_that_went_away_amid_a_handshake(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, CUT_OFF, CUT_OFF, *[AWAY, ALL_DOWN] * 30)
    failure = sink_failure(TIMED_OUT, "cannot publish", complaints)
    assert failure.retryable
    assert "Connection refused" in str(failure)


def test_a_sink_is_refused_by_brokers_that_keep_refusing(clock: Clock) -> None:
    complaints = Complaints()
    told(clock, complaints, *[WRONG_PASSWORD, ALL_DOWN] * 30)
    failure = sink_failure(TIMED_OUT, "cannot publish", complaints)
    assert isinstance(failure, SinkRefused)
    assert "Invalid username or password" in str(failure)


def test_rows_are_not_refused_for_what_was_complained_of_before_them(clock: Clock) -> None:
    log = Log()
    idle = Sender({"bootstrap.servers": log.address}, 1.0)
    told(clock, idle._complaints, *[CUT_OFF] * 20)
    idle.send(())
    told(clock, idle._complaints, CUT_OFF)
    assert idle.failure(TIMED_OUT, "cannot publish").retryable


class Silent:
    """A consumer that gets no record, only complaints: one in half a second, the last one again and again."""

    def __init__(self, clock: Clock, complaints: Complaints, errors: list[Any]) -> None:
        self._clock, self._complaints, self._errors = clock, complaints, errors

    def consume(self, most: int, timeout: float) -> list[Any]:
        return []

    def poll(self, timeout: float) -> None:
        told(self._clock, self._complaints, self._errors[0])
        if len(self._errors) > 1:
            self._errors.pop(0)


def read(clock: Clock, *errors: Any) -> None:
    """A read that gives up at some time."""
    complaints = Complaints()
    held = Seat(Silent(clock, complaints, [*errors]), complaints, "", ("t", 0), 0, 0)
    wanted = Range(("t", 0), 0, 5, Needs(), patience_s=60.0)
    silence = ranges._Silence(clock.now)
    while True:
        ranges._round(held, wanted, Records(), silence)


def test_a_read_waits_for_brokers_that_went_away_amid_a_handshake(clock: Clock) -> None:
    with pytest.raises(EngineError, match=r"nothing came for 60 s .*Connection refused") as raised:
        read(clock, CUT_OFF, CUT_OFF, AWAY)
    assert raised.value.retryable


def test_a_read_that_is_refused_ends_soon(clock: Clock) -> None:
    began = clock.now
    with pytest.raises(SetupError, match="Invalid username or password"):
        read(clock, AWAY, WRONG_PASSWORD)
    assert clock.now - began < 2 * REFUSED_S


def test_a_read_is_not_refused_for_what_was_complained_of_before_it(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    complaints = Complaints()
    told(clock, complaints, *[CUT_OFF] * 20)
    silent = Silent(clock, complaints, [CUT_OFF, ALL_DOWN])
    held = Seat(silent, complaints, consumers._digest({}), ("t", 0), 0, 0)
    monkeypatch.setattr(silent, "close", lambda: None, raising=False)
    monkeypatch.setattr(consumers, "_SEATS", [held])
    monkeypatch.setattr(ranges, "_Silence", lambda: SimpleNamespace(since_s=clock.now, ends=None))
    with pytest.raises(EngineError, match="nothing came for 60 s"):
        list(records_of({}, Range(("t", 0), 0, 5, Needs(), patience_s=60.0)))
