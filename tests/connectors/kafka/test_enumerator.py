"""Brokers that are away when a job starts: a new job has a wrong address, one that ran before waits for them."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.connectors.kafka import KafkaSource
from headrace.connectors.kafka.reading import enumerator
from headrace.connectors.kafka.reading.birth import Birth, Births
from headrace.connectors.kafka.reading.cluster import Gone
from headrace.connectors.kafka.reading.enumerator import KafkaEnumerator
from headrace.connectors.kafka.reading.survey import Watched
from headrace.connectors.kafka.reading.topic_choice import TopicChoice
from headrace.errors import EngineError, InputError, SetupError
from headrace.testing.log import Log

WATCHED = Watched(choice=TopicChoice(("orders",)), start="earliest", stop=None, on_loss="fail")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enumerator, "_START_S", 0.0)
    monkeypatch.setattr(enumerator, "_ANSWER_S", 0.5)


@pytest.fixture
def log() -> Log:
    made = Log()
    made.topic("orders")
    return made


def source(log: Log) -> KafkaSource:
    return KafkaSource(log.address, "orders", schema=pa.schema({"n": pa.int64()}))


def test_the_first_start_says_that_no_broker_answers(log: Log, tmp_path: Path) -> None:
    words = r"memory://log-\d+ cannot be asked for topics: Connection refused"
    with log.away(), pytest.raises(SetupError, match=words):
        source(log).enumerator(tmp_path)


def test_a_later_start_is_tried_again(log: Log, tmp_path: Path) -> None:
    source(log).enumerator(tmp_path).close()
    with log.away(), pytest.raises(EngineError, match="cannot be asked for topics") as caught:
        source(log).enumerator(tmp_path)
    assert caught.value.retryable


def watched(monkeypatch: pytest.MonkeyPatch, directory: Path, *answers: Any) -> KafkaEnumerator:
    """One whose cluster gives these answers to its first looks, a second each; the last one again and again."""
    seconds = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(seconds)), sleep=lambda _: None)
    monkeypatch.setattr(enumerator, "time", clock)
    found = KafkaEnumerator({"bootstrap.servers": "127.0.0.1:1"}, WATCHED, directory)
    looks = itertools.chain(answers, itertools.repeat(answers[-1]))

    def look() -> None:
        answer = next(looks)
        if answer is None:
            return
        error = KafkaError(answer)
        # The library tells of connections on its own, of answers it does not.
        if error.name().startswith("_"):
            found._cluster.complaints(error)
        raise KafkaException(error)

    monkeypatch.setattr(found._survey, "begin", look)
    monkeypatch.setattr(found._thread, "start", lambda: None)
    return found


def test_what_nobody_may_read_is_not_asked_for_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Births("None", {("orders", 0): Birth(0)}, {"orders": "id"}).write(tmp_path)
    refused = watched(monkeypatch, tmp_path, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(SetupError, match="authorization failed"):
        refused.start()


def test_a_handshake_that_is_broken_off_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enumerator, "_START_S", 30.0)
    watched(monkeypatch, tmp_path, KafkaError._SSL, KafkaError._TIMED_OUT, None).start()


def test_a_topic_that_was_away_is_looked_at_before_its_offsets_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another one that has more records already."""
    monkeypatch.setattr(enumerator, "_SURVEY_S", 1_000.0)
    found = KafkaEnumerator({"bootstrap.servers": "127.0.0.1:1"}, WATCHED, tmp_path)
    looks = iter([True, False])

    def look_ahead() -> None:
        if next(looks):
            raise Gone("orders")
        found._closing.set()

    def recognise() -> None:
        raise InputError("another topic")

    monkeypatch.setattr(found._survey, "look_ahead", look_ahead)
    monkeypatch.setattr(found._survey, "recognise", recognise)
    found._watch()
    with pytest.raises(InputError, match="another topic"):
        found.spans()


def test_offsets_are_committed_to_the_group_when_brokers_answer_again(
    log: Log, tmp_path: Path
) -> None:
    found = KafkaEnumerator({"bootstrap.servers": log.address}, WATCHED, tmp_path, group="g")
    found._say("away", "no broker answers")
    for to in (5, 7):
        found.durable({"orders-0": to})
        found._commit()
    assert log.committed("g") == {}
    found._unsay("away", "they answer")
    found._commit()
    assert log.committed("g") == {("orders", 0): 7}
    log.fail("groups")
    found._commit()
    assert found._said == set()
    # There was nothing to commit, so the request that would fail was not made.
    assert log.unreached == 1
