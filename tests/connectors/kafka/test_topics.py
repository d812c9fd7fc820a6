"""How many partitions a topic has is asked, never guessed."""

import pytest

from headrace.connectors.kafka.writing import topics as topics_module
from headrace.connectors.kafka.writing.topics import NewTopic, Topics
from headrace.errors import SinkError, SinkRefused
from headrace.testing.log import Log

UNKNOWN = "UNKNOWN_TOPIC_OR_PART"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(topics_module, "_SECOND_LOOK_S", 0.01)
    monkeypatch.setattr(topics_module, "_ANSWER_S", 0.1)
    return Log()


def test_a_topic_is_not_made_with_fewer_copies_than_the_brokers_would(log: Log) -> None:
    """While brokers are away their default cannot be had; a topic with one copy would stay so."""
    topics = Topics(log.address, {})
    log.fail("create", "INVALID_REPLICATION_FACTOR")
    with pytest.raises(SinkRefused, match=r"too few brokers .* replication="):
        topics.create("orders", NewTopic(partitions=3))
    assert topics.count("orders") is None
    topics.create("orders", NewTopic(partitions=3))
    assert log._broker.topics["orders"].replication == -1


def test_a_topic_that_was_there_keeps_its_number(log: Log) -> None:
    """A broker that has just started may say that there is none; making it then changes nothing."""
    log.topic("orders", partitions=12)
    log.fail("topics", UNKNOWN, times=2)
    assert Topics(log.address, {}).partitions("orders", NewTopic(partitions=3)) == 12


def test_a_topic_that_a_broker_does_not_know_yet_is_looked_for_twice(log: Log) -> None:
    log.topic("orders", partitions=12)
    log.fail("topics", UNKNOWN)
    assert Topics(log.address, {}).partitions("orders") == 12
    with pytest.raises(SinkRefused, match="there is no topic 'absent' at memory://"):
        Topics(log.address, {}).partitions("absent")


def test_a_number_that_is_never_answered_is_asked_for_again(log: Log) -> None:
    log.fail("topics", UNKNOWN, times=1_000)
    with pytest.raises(SinkError, match=r"'orders' was made .* not known there yet") as raised:
        Topics(log.address, {}).partitions("orders", NewTopic(partitions=3))
    assert raised.value.retryable


def test_a_setting_that_may_not_be_read_is_none(log: Log) -> None:
    log.topic("orders", cleanup_policy="compact")
    topics = Topics(log.address, {})
    assert topics.setting("orders", "cleanup.policy") == "compact"
    assert topics.largest_record("orders") == 1_048_588
    log.fail("topics", "TOPIC_AUTHORIZATION_FAILED")
    assert topics.setting("orders", "cleanup.policy") is None
