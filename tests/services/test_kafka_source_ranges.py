"""Ranges of offsets: transactions, marks at their ends, consumers that are kept; the same rows however they are cut."""

import itertools
import random
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.kafka.reading import consumers
from headrace.errors import EngineError, InputError, SetupError
from tests.services.kafka_topics import (
    Topics,
    batches,
    first_spans,
    numbers,
    rows,
    source,
    until,
    watching,
)

pytestmark = pytest.mark.services


@pytest.fixture
def topics(kafka: Any) -> Topics:
    return Topics(kafka.bootstrap)


def test_a_range_that_ends_in_aborted_records_stops_at_once(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic)
    topics.send(topic, range(5))
    topics.transact(topic, range(100, 105), commit=False)
    watched = source(kafka, topic)
    assert first_spans(watched, tmp_path)[f"{topic}-0"].end == 11
    assert numbers(batches(watched, f"{topic}-0", 0, 4)) == [0, 1, 2, 3]
    began = time.monotonic()
    assert numbers(batches(watched, f"{topic}-0", 4, 11)) == [4]
    assert numbers(batches(watched, f"{topic}-0", 7, 9)) == []
    assert numbers(batches(watched, f"{topic}-0", 9, 11)) == []
    assert time.monotonic() - began < 2


def test_a_range_that_ends_with_a_mark_stops_at_once(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic)
    watched = source(kafka, topic)
    found, position = [], 0
    with watching(watched, tmp_path) as enumerator:
        for n in range(3):
            topics.transact(topic, [n])
            until(lambda: enumerator.spans()[f"{topic}-0"].end > position)  # noqa: B023
            end = enumerator.spans()[f"{topic}-0"].end
            began = time.monotonic()
            found += numbers(batches(watched, f"{topic}-0", position, end))
            assert n == 0 or time.monotonic() - began < 1
            position = end
    assert found == [0, 1, 2]
    assert position == 6


def test_an_open_transaction_holds_the_end(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic)
    topics.send(topic, [1, 2])
    producer = topics.transaction(topic)
    producer.produce(topic, b'{"n": 3}', partition=0)
    producer.flush(20)
    topics.send(topic, [4])
    name = f"{topic}-0"
    with watching(source(kafka, topic), tmp_path / "committed") as enumerator:
        assert enumerator.spans()[name].end == 2
        producer.commit_transaction(20)
        until(lambda: enumerator.spans()[name].end == 5)
    assert numbers(batches(source(kafka, topic), name, 0, 5)) == [1, 2, 3, 4]


def test_uncommitted_records_are_read_by_choice(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic)
    topics.transact(topic, [1, 2], commit=False)
    producer = topics.transaction(topic)
    producer.produce(topic, b'{"n": 3}', partition=0)
    producer.flush(20)
    dirty = source(kafka, topic, isolation="read_uncommitted")
    assert rows(dirty, tmp_path) == {f"{topic}-0": [1, 2, 3]}
    producer.abort_transaction(20)


def test_any_split_gives_what_a_plain_consumer_reads(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    """Random ranges in any order, with aborted records, marks and other tombstones of offsets in between."""
    chance = random.Random(topic)
    topics.make(topic, 2)
    for n in range(12):
        values = range(n * 1000, n * 1000 + chance.randrange(1, 400))
        for partition in (0, 1):
            if chance.random() < 0.5:
                topics.send(topic, values, partition)
            else:
                topics.transact(topic, values, partition, commit=chance.random() < 0.6)
    plain = topics.all_of(topic, 2)
    watched = source(kafka, topic)
    for name, span in first_spans(watched, tmp_path).items():
        cuts = sorted({0, span.end, *(chance.randrange(span.end) for _ in range(15))})
        ranges = list(itertools.pairwise(cuts))
        for order in (ranges, chance.sample(ranges, len(ranges))):
            found = [batch for a, b in order for batch in batches(watched, name, a, b)]
            pairs = [
                (int(offset), n)
                for batch in found
                for offset, n in zip(
                    batch.offsets, batch.batch.column("n").to_pylist(), strict=True
                )
            ]
            expected = [(offset, int(value[6:-1])) for offset, value in plain[name]]
            assert sorted(pairs) == expected


def test_a_consumer_that_stands_right_is_used_again(kafka: Any, topics: Topics, topic: str) -> None:
    topics.make(topic)
    topics.send(topic, range(100))
    watched = source(kafka, topic)
    assert numbers(batches(watched, f"{topic}-0", 0, 30)) == [*range(30)]
    held = next(one for one in consumers._SEATS if one.partition == (topic, 0))
    assert (held.floor, held.taken) == (30, False)
    count = len(consumers._SEATS)
    for start, end in ((30, 60), (70, 80), (10, 20), (99, 100)):
        assert numbers(batches(watched, f"{topic}-0", start, end)) == [*range(start, end)]
    assert len(consumers._SEATS) == count


def test_a_read_that_is_left_halfway_can_be_read_again(
    kafka: Any, topics: Topics, topic: str
) -> None:
    topics.make(topic)
    topics.send(topic, range(50_000))
    watched = source(kafka, topic)
    half = watched.read(f"{topic}-0", 0, 50_000, Path("unused"))
    next(half)
    half.close()  # type: ignore[attr-defined]
    assert numbers(batches(watched, f"{topic}-0", 0, 50_000)) == [*range(50_000)]


def test_more_partitions_than_consumers(
    kafka: Any, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_MOST", 2)
    monkeypatch.setattr(consumers, "_SEATS", [])
    topics.make(topic, 5)
    for partition in range(5):
        topics.send(topic, range(partition * 10, partition * 10 + 10), partition)
    watched = source(kafka, topic, group=topic)
    for half in (0, 5):
        for n in range(5):
            found = numbers(batches(watched, f"{topic}-{n}", half, half + 5))
            assert found == [*range(n * 10 + half, n * 10 + half + 5)]
    assert len(consumers._SEATS) == 2


def test_offsets_that_retention_took_fail_with_the_range(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic)
    topics.send(topic, range(10))
    watched = source(kafka, topic)
    with watching(watched, tmp_path) as enumerator:
        topics.cut(topic, 0, 6)
        until(lambda: enumerator.spans()[f"{topic}-0"].first == 6)
    with pytest.raises(
        InputError, match=rf"offsets 2 to 5 of {topic}-0 were not read yet and are gone"
    ):
        batches(watched, f"{topic}-0", 2, 10)
    assert numbers(batches(watched, f"{topic}-0", 6, 10)) == [6, 7, 8, 9]


def test_offsets_that_are_gone_are_skipped_by_choice(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics.make(topic)
    topics.send(topic, range(10))
    lossy = source(kafka, topic, on_data_loss="skip")
    assert rows(lossy, tmp_path) == {f"{topic}-0": [*range(10)]}
    topics.cut(topic, 0, 6)
    assert first_spans(lossy, tmp_path)[f"{topic}-0"].first == 0
    assert numbers(batches(lossy, f"{topic}-0", 2, 9)) == [6, 7, 8]
    assert numbers(batches(lossy, f"{topic}-0", 2, 5)) == []
    assert f"offsets 2 to 5 of {topic}-0 are gone" in caplog.text


def test_a_topic_that_was_made_again_is_refused(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic)
    topics.send(topic, range(10))
    watched = source(kafka, topic)
    with watching(watched, tmp_path) as enumerator:
        topics.remove(topic)
        topics.make(topic)

        def refuses() -> bool:
            try:
                enumerator.spans()
            except InputError as error:
                return f"topic {topic!r} was deleted and created again" in str(error)
            return False

        until(refuses)
    with pytest.raises(InputError, match="start with a new checkpoint"):
        watched.enumerator(tmp_path)


def test_a_topic_that_is_missing_is_named(kafka: Any, topic: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"topic {topic!r} does not exist at"):
        source(kafka, topic).enumerator(tmp_path)


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.connectors.kafka.reading.enumerator._START_S", 1.0)
    monkeypatch.setattr("headrace.connectors.kafka.reading.enumerator._ANSWER_S", 1.0)
    nobody = type("Nobody", (), {"bootstrap": "127.0.0.1:1"})
    with pytest.raises(SetupError, match=r"Kafka at 127.0.0.1:1 .*Connection refused"):
        source(nobody, "any").enumerator(tmp_path)


def test_a_read_gives_up_after_its_patience() -> None:
    nobody = type("Nobody", (), {"bootstrap": "127.0.0.1:1"})
    impatient = source(nobody, "any", read_timeout=timedelta(seconds=1))
    with pytest.raises(EngineError, match=r"any-0: nothing came for 1 s .*Connection refused"):
        batches(impatient, "any-0", 0, 1)
