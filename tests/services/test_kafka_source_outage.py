"""A broker that goes away and comes back: the source waits, says so once, and loses nothing."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.services.kafka_topics import Topics, batches, numbers, source, until, watching

pytestmark = pytest.mark.services


def test_a_broker_that_was_away_is_read_on(
    kafka: Any, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = Topics(kafka.bootstrap)
    topics.make(topic)
    topics.send(topic, range(10))
    name = f"{topic}-0"
    watched = source(kafka, topic)
    with watching(watched, tmp_path) as enumerator:
        assert numbers(batches(watched, name, 0, 5)) == [*range(5)]
        before = enumerator.spans()
        kafka.kill()
        try:
            until(lambda: "does not answer" in caplog.text, 90)
            assert enumerator.spans() == {name: replace(before[name], stale=True)}
            found: list[int] = []
            # The range was planned before; what the consumer had not fetched yet waits for the broker.
            reader = threading.Thread(
                target=lambda: found.extend(numbers(batches(watched, name, 0, 10)))
            )
            reader.start()
            time.sleep(1)
        finally:
            kafka.start()
        reader.join(60)
        assert found == [*range(10)]
        topics.send(topic, range(10, 15))
        until(lambda: enumerator.spans()[name].end == 15, 30)
        until(lambda: "answers again" in caplog.text)
        assert not enumerator.spans()[name].stale
    assert numbers(batches(watched, name, 5, 15)) == [*range(5, 15)]
    assert caplog.text.count("does not answer") == 1


def test_closing_does_not_wait_for_a_broker_that_is_away(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    Topics(kafka.bootstrap).make(topic)
    enumerator = source(kafka, topic).enumerator(tmp_path)
    kafka.kill()
    try:
        time.sleep(0.5)
        began = time.monotonic()
        enumerator.close()
        assert time.monotonic() - began < 10
    finally:
        kafka.start()
