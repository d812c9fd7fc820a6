"""How many partitions a topic has is asked, never guessed."""

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.connectors.kafka.writing import topics as topics_module
from headrace.connectors.kafka.writing.topics import NewTopic, Topics
from headrace.errors import SinkError, SinkRefused


class Refusing:
    """An administrator whose cluster has too few brokers at the moment."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def create_topics(self, wanted: list[Any], **_: object) -> dict[str, Future[None]]:
        answer: Future[None] = Future()
        answer.set_exception(KafkaException(KafkaError(KafkaError.INVALID_REPLICATION_FACTOR)))
        self.asked += [one.replication_factor for one in wanted]
        return {one.topic: answer for one in wanted}

    def poll(self, _: float) -> None:
        """Nothing to call back."""


def test_a_topic_is_not_made_with_fewer_copies_than_the_brokers_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While brokers are away their default cannot be had; a topic with one copy would stay so."""
    topics, admin = Topics("127.0.0.1:1", {}), Refusing()
    monkeypatch.setattr(topics, "_admin", admin)
    with pytest.raises(SinkRefused, match=r"too few brokers .* replication="):
        topics.create("orders", NewTopic(partitions=3))
    assert admin.asked == [-1]


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    monkeypatch.setattr(topics_module, "_SECOND_LOOK_S", 0.01)
    monkeypatch.setattr(topics_module, "_ANSWER_S", 0.1)
    made = Topics("127.0.0.1:1", {})
    monkeypatch.setattr(made, "create", lambda *_: None)
    return made


def test_a_topic_that_was_there_keeps_its_number(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that has just started may say that there is none; making it then changes nothing."""
    answers = iter([None, None, 12])
    monkeypatch.setattr(topics, "count", lambda _: next(answers))
    assert topics.partitions("orders", NewTopic(partitions=3)) == 12


def test_a_number_that_nobody_tells_is_asked_for_again(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "count", lambda _: None)
    with pytest.raises(SinkError, match=r"'orders' was made .* not known there yet") as raised:
        topics.partitions("orders", NewTopic(partitions=3))
    assert raised.value.retryable
