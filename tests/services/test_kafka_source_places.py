"""Where a Kafka source begins and ends: every kind of start and stop, kept over restarts; growth."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.kafka import Committed
from headrace.errors import InputError
from tests.services.kafka_topics import Topics, first_spans, rows, source, until, watching

pytestmark = pytest.mark.services

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def topics(kafka: Any) -> Topics:
    return Topics(kafka.bootstrap)


@pytest.fixture
def filled(topics: Topics, topic: str) -> str:
    """Two partitions: 0 to 9, and 100 to 104; a record a second."""
    topics.make(topic, 2)
    for partition, values in ((0, range(10)), (1, range(100, 105))):
        for n in values:
            at = MOMENT + timedelta(seconds=n % 100)
            topics.send(topic, [n], partition, timestamp=int(at.timestamp() * 1000))
    return topic


def test_earliest_begins_at_the_oldest_record(
    kafka: Any, topics: Topics, filled: str, tmp_path: Path
) -> None:
    topics.cut(filled, 0, 3)
    found = rows(source(kafka, filled), tmp_path)
    assert found == {f"{filled}-0": [3, 4, 5, 6, 7, 8, 9], f"{filled}-1": [100, 101, 102, 103, 104]}


def test_latest_is_where_the_first_start_saw_the_end(
    kafka: Any, topics: Topics, filled: str, tmp_path: Path
) -> None:
    latest = source(kafka, filled, start="latest")
    assert rows(latest, tmp_path) == {f"{filled}-0": [], f"{filled}-1": []}
    topics.send(filled, [10, 11])
    assert rows(latest, tmp_path) == {f"{filled}-0": [10, 11], f"{filled}-1": []}


def test_a_time_begins_with_its_first_record_or_at_the_end(
    kafka: Any, filled: str, tmp_path: Path
) -> None:
    at = source(kafka, filled, start=MOMENT + timedelta(seconds=7, microseconds=-1))
    assert rows(at, tmp_path) == {f"{filled}-0": [7, 8, 9], f"{filled}-1": []}


def test_given_offsets_and_the_oldest_for_the_rest(kafka: Any, filled: str, tmp_path: Path) -> None:
    given = source(kafka, filled, start={(filled, 0): 8})
    assert rows(given, tmp_path) == {f"{filled}-0": [8, 9], f"{filled}-1": [*range(100, 105)]}


@pytest.mark.parametrize(
    ("start", "said"),
    [({0: 11}, "ends at 10, but start= says 11"), ({7: 0}, "-7, which does not exist")],
)
def test_offsets_that_are_not_there_are_refused(
    kafka: Any, filled: str, tmp_path: Path, start: dict[int, int], said: str
) -> None:
    given = source(kafka, filled, start={(filled, key): at for key, at in start.items()})
    with pytest.raises(InputError, match=said):
        given.enumerator(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_groups_offsets_and_otherwise(kafka: Any, filled: str, tmp_path: Path) -> None:
    first = source(kafka, filled, group=f"{filled}-g")
    with watching(first, tmp_path / "a") as enumerator:
        enumerator.durable({f"{filled}-0": 6})
    for otherwise, second in (("earliest", [*range(100, 105)]), ("latest", [])):
        start = Committed(f"{filled}-g", otherwise=otherwise)  # type: ignore[arg-type]
        found = rows(source(kafka, filled, start=start), tmp_path / otherwise)
        assert found == {f"{filled}-0": [6, 7, 8, 9], f"{filled}-1": second}
    strict = source(kafka, filled, start=Committed(f"{filled}-g", otherwise="fail"))
    with pytest.raises(InputError, match=f"nothing for {filled}-1"):
        strict.enumerator(tmp_path / "strict")


def test_stops_are_kept_and_finish(kafka: Any, topics: Topics, filled: str, tmp_path: Path) -> None:
    bounded = source(kafka, filled, stop="latest")
    assert rows(bounded, tmp_path)[f"{filled}-1"] == [*range(100, 105)]
    topics.send(filled, [10, 11])
    topics.grow(filled, 3)
    spans = first_spans(bounded, tmp_path)
    assert {name: (span.end, span.finished) for name, span in spans.items()} == {
        f"{filled}-0": (10, True),
        f"{filled}-1": (5, True),
    }


def test_stop_at_a_time_and_at_offsets(kafka: Any, filled: str, tmp_path: Path) -> None:
    timed = source(kafka, filled, stop=MOMENT + timedelta(seconds=4))
    expected = {f"{filled}-0": [0, 1, 2, 3], f"{filled}-1": [100, 101, 102, 103]}
    assert rows(timed, tmp_path / "time") == expected
    given = source(kafka, filled, stop={(filled, 0): 2, (filled, 1): 6})
    spans = first_spans(given, tmp_path / "given")
    assert [(span.end, span.finished) for span in spans.values()] == [(2, True), (5, False)]
    partial = source(kafka, filled, stop={(filled, 0): 2})
    with pytest.raises(InputError, match=f"no offset for {filled}-1"):
        partial.enumerator(tmp_path / "partial")


def test_partitions_grow_while_running_and_while_stopped(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(topic, 1)
    growing = source(kafka, topic, start="latest", discover_every=timedelta(milliseconds=100))
    with watching(growing, tmp_path) as enumerator:
        assert list(enumerator.spans()) == [f"{topic}-0"]
        topics.grow(topic, 2)
        topics.send(topic, [1, 2], 1)
        until(lambda: enumerator.spans().get(f"{topic}-1", None) is not None)
        until(lambda: enumerator.spans()[f"{topic}-1"].end == 2)
    topics.grow(topic, 3)
    topics.send(topic, [3], 2)
    found = rows(growing, tmp_path)
    assert found == {f"{topic}-0": [], f"{topic}-1": [1, 2], f"{topic}-2": [3]}


def test_a_pattern_finds_topics_that_appear_later(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    matching = source(
        kafka, None, pattern=f"{topic}-[ab]", discover_every=timedelta(milliseconds=100)
    )
    topics.make(f"{topic}-c")
    with watching(matching, tmp_path) as enumerator:
        assert enumerator.spans() == {}
        topics.make(f"{topic}-a")
        topics.send(f"{topic}-a", [1])
        until(lambda: list(enumerator.spans()) == [f"{topic}-a-0"])
    topics.make(f"{topic}-b")
    topics.send(f"{topic}-b", [2])
    assert rows(matching, tmp_path) == {f"{topic}-a-0": [1], f"{topic}-b-0": [2]}


def test_several_topics_are_read_side_by_side(
    kafka: Any, topics: Topics, topic: str, tmp_path: Path
) -> None:
    for n, name in enumerate((f"{topic}-x", f"{topic}-y")):
        topics.make(name)
        topics.send(name, [n])
    both = source(kafka, [f"{topic}-x", f"{topic}-y"])  # type: ignore[arg-type]
    assert rows(both, tmp_path) == {f"{topic}-x-0": [0], f"{topic}-y-0": [1]}
