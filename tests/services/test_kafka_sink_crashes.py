"""Whatever happens between two steps of a publication, every row is there once and in order."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headrace.connectors.kafka import KafkaSink, NewTopic
from headrace.connectors.kafka.writing.lane import TransactionalLane
from headrace.connectors.kafka.writing.records import Chunk
from headrace.connectors.kafka.writing.sender import Sender
from headrace.endpoints import Publisher
from headrace.errors import SinkError, SinkRefused
from tests.connectors.kafka.publishing_run import Run, rows
from tests.services.kafka_sinks import committed, values

pytestmark = pytest.mark.services

EPOCHS = 3
EVEN, ODD = (0, 2, 4, 6), (1, 3, 5, 7)


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def run(kafka: Any, topic: str, tmp_path: Path) -> Iterator[Run]:
    sink = KafkaSink(
        kafka.bootstrap,
        topic,
        key="k",
        create=NewTopic(3, 1),
        transaction_timeout=timedelta(minutes=1),
    )
    made = Run(sink, tmp_path)
    yield made
    made.close()


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Lets lane 1 die at a point, once; what it had open stays open, as with a process that is gone."""
    gone: list[Sender | None] = []

    def forget(lane: TransactionalLane, error: BaseException) -> None:
        gone.append(lane._sender)
        lane._sender = None

    def arm(point: str, epoch: int) -> None:
        monkeypatch.setattr(TransactionalLane, "_end", forget)
        _POINTS[point](monkeypatch, epoch)

    return arm


def once(
    monkeypatch: pytest.MonkeyPatch, name: str, replacement: Callable[..., Any], epoch: int | None
) -> None:
    """Replaces a step of lane 1 the first time that it is taken (in this epoch)."""
    true, done = getattr(TransactionalLane, name), []

    def step(lane: TransactionalLane, *arguments: Any) -> Any:
        here = epoch is None or (arguments and getattr(arguments[0], "epoch", epoch) == epoch)
        if done or lane._settings.identity.lane != 1 or not here:
            return true(lane, *arguments)
        done.append(True)
        return replacement(true, lane, *arguments)

    monkeypatch.setattr(TransactionalLane, name, step)


def before_init(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    def step(true: Any, lane: TransactionalLane) -> None:
        raise Killed

    once(monkeypatch, "_take_over", step, None)


def after_init(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    def step(true: Any, lane: TransactionalLane) -> None:
        raise Killed

    once(monkeypatch, "_read_marker", step, None)


def amid_rows(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    def step(true: Any, lane: TransactionalLane, marker: Any, chunks: Iterable[Chunk]) -> None:
        true(lane, marker, broken(lane, chunks))

    def broken(lane: TransactionalLane, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        yield next(iter(chunks))
        assert lane._sender is not None
        lane._sender.flush()
        raise Killed

    once(monkeypatch, "_transact", step, epoch)


def before_commit(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    def transact(true: Any, lane: TransactionalLane, *arguments: Any) -> None:
        def commit(self: TransactionalLane, sender: Sender) -> None:
            raise Killed

        monkeypatch.setattr(lane, "_commit", commit.__get__(lane))
        true(lane, *arguments)

    once(monkeypatch, "_transact", transact, epoch)


def after_commit(monkeypatch: pytest.MonkeyPatch, epoch: int) -> None:
    def transact(true: Any, lane: TransactionalLane, *arguments: Any) -> None:
        def commit(self: TransactionalLane, sender: Sender) -> None:
            TransactionalLane._commit(self, sender)
            raise Killed

        monkeypatch.setattr(lane, "_commit", commit.__get__(lane))
        true(lane, *arguments)

    once(monkeypatch, "_transact", transact, epoch)


_POINTS: dict[str, Callable[[pytest.MonkeyPatch, int], None]] = {
    "before init": before_init,
    "after init": after_init,
    "amid rows": amid_rows,
    "before commit": before_commit,
    "after commit": after_commit,
}


def stage_all(run: Run) -> None:
    for epoch in range(EPOCHS):
        run.stage(epoch, rows(epoch * 400, 200, EVEN), rows(epoch * 400 + 200, 200, ODD))


def check(run: Run, kafka: Any, topic: str, epochs: int = EPOCHS) -> None:
    """Count what is lost, doubled and out of order, as a reader of committed records sees it."""
    found = values(committed(kafka.bootstrap, topic))
    counted = Counter(one["n"] for one in found)
    assert [n for n in range(epochs * 400) if n not in counted] == [], "lost"
    assert [n for n, times in counted.items() if times > 1] == [], "doubled"
    by_key = defaultdict(list)
    for one in found:
        by_key[one["k"]].append(one["n"])
    assert [key for key, numbers in by_key.items() if numbers != sorted(numbers)] == [], "order"


def publish_through(run: Run, first: int, publisher: Publisher) -> None:
    for epoch in range(first, EPOCHS):
        run.publish(publisher, epoch)


@pytest.mark.parametrize("point", list(_POINTS))
def test_killed_at_every_step(
    run: Run, kafka: Any, topic: str, killing: Callable[[str, int], None], point: str
) -> None:
    epoch = 1
    stage_all(run)
    publisher = run.start()
    for earlier in range(epoch):
        run.publish(publisher, earlier)
    if "init" in point:
        for lane in publisher._lanes:  # type: ignore[attr-defined]
            lane.drop()
    killing(point, epoch)
    with pytest.raises(Killed):
        run.publish(publisher, epoch)
    publish_through(run, epoch, run.start())
    check(run, kafka, topic)


def test_killed_behind_the_publication_and_before_the_note(
    run: Run, kafka: Any, topic: str
) -> None:
    stage_all(run)
    first = run.start()
    run.publish(first, 0)
    run.publish(first, 1)
    publish_through(run, 1, run.start())
    check(run, kafka, topic)


def test_the_same_epoch_again_in_one_run(run: Run, kafka: Any, topic: str) -> None:
    stage_all(run)
    publisher = run.start()
    for epoch in range(EPOCHS):
        run.publish(publisher, epoch)
        run.publish(publisher, epoch)
    check(run, kafka, topic)


def test_a_zombie_is_refused_and_its_rows_stay_hidden(run: Run, kafka: Any, topic: str) -> None:
    stage_all(run)
    zombie = run.start()
    run.publish(zombie, 0)
    heir = run.start()
    with pytest.raises(SinkRefused, match="start 2 of this job has taken sink 'out' over"):
        run.publish(zombie, 1)
    assert len(committed(kafka.bootstrap, topic)) == 400
    # The zombie took the lanes back to read their markers; the heir notices and goes on.
    publish_through(run, 1, heir)
    check(run, kafka, topic)


def test_an_outcome_that_is_not_known_is_looked_up(
    run: Run, kafka: Any, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit arrives and its answer does not."""

    def lost(true: Any, lane: TransactionalLane, sender: Sender) -> None:
        true(lane, sender)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    stage_all(run)
    publisher = run.start()
    once(monkeypatch, "_commit", lost, None)
    with pytest.raises(SinkError, match="lane 1 of sink 'out' cannot publish epoch 0"):
        run.publish(publisher, 0)
    publish_through(run, 0, publisher)
    check(run, kafka, topic)


def test_a_transaction_that_the_broker_timed_out_is_published_anew(
    kafka: Any, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F24. The broker of the tests looks for such transactions once a second."""
    sink = KafkaSink(
        kafka.bootstrap,
        topic,
        key="k",
        create=NewTopic(2, 1),
        transaction_timeout=timedelta(seconds=1),
    )
    run = Run(sink, tmp_path)

    slept = []

    def slow(true: Any, lane: TransactionalLane, sender: Sender) -> None:
        sleep(4)
        slept.append(lane._settings.identity.lane)
        with pytest.raises(KafkaException, match="fenced"):
            true(lane, sender)
        true(lane, sender)

    stage_all(run)
    publisher = run.start()
    once(monkeypatch, "_commit", slow, None)
    publish_through(run, 0, publisher)
    run.close()
    assert slept == [1]
    check(run, kafka, topic)


def test_a_new_checkpoint_publishes_everything_again(
    run: Run, kafka: Any, topic: str, tmp_path: Path
) -> None:
    """F29b: nothing of an earlier incarnation counts."""
    stage_all(run)
    publish_through(run, 0, run.start())
    again = Run(run.sink, tmp_path / "again")
    stage_all(again)
    publisher = again.start()
    assert publisher.highest_seen() is None
    publish_through(again, 0, publisher)
    again.close()
    counted = Counter(one["n"] for one in values(committed(kafka.bootstrap, topic)))
    assert set(counted.values()) == {2}


def test_the_sink_says_how_far_it_is(run: Run) -> None:
    stage_all(run)
    publisher = run.start()
    assert publisher.highest_seen() is None
    run.publish(publisher, 0)
    assert run.start().highest_seen() == 0
