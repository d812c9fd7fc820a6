"""A broker that dies in the middle of a publication, one that is away for long (F22, F23), one that refuses us."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace._services import Kafka
from headrace.connectors.kafka import KafkaSink, NewTopic
from headrace.connectors.kafka.writing import lane as lane_module
from headrace.connectors.kafka.writing import topics
from headrace.connectors.kafka.writing.lane import LaneSettings, TransactionalLane, opened_lane
from headrace.connectors.kafka.writing.markers import Marker
from headrace.connectors.kafka.writing.records import Chunk
from headrace.endpoints import DeliveryGuarantee, Publisher
from headrace.errors import SinkError, SinkRefused
from tests.connectors.kafka.publishing_run import Run, rows
from tests.services.kafka_sinks import committed, values

pytestmark = pytest.mark.services

ROWS = 3_000


@pytest.fixture(scope="module")
def broker(servers_root: Path) -> Iterator[Any]:
    """One that may be killed."""
    server = Kafka(servers_root / "kafka-to-kill")
    server.start()
    yield server
    server.remove()


@pytest.fixture
def run(broker: Any, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    # A broker that is away is noticed sooner than in earnest.
    monkeypatch.setattr(lane_module, "_PATIENCE_S", 4.0)
    monkeypatch.setattr(topics, "_ANSWER_S", 4.0)
    made = Run(KafkaSink(broker.address, topic, key="k", create=NewTopic(3, 1)), tmp_path)
    yield made
    made.close()


def until_published(run: Run, publisher: Publisher, epoch: int) -> list[SinkError]:
    """Ask again and again, as the committer does."""
    problems: list[SinkError] = []
    until = time.monotonic() + 90
    while time.monotonic() < until:
        try:
            run.publish(publisher, epoch)
        except SinkError as error:
            if not error.retryable:
                raise
            problems.append(error)
            time.sleep(0.2)
        else:
            return problems
    raise AssertionError(problems)


def check(broker: Any, topic: str, epochs: int) -> None:
    found = values(committed(broker.address, topic))
    counted = Counter(one["n"] for one in found)
    assert sorted(counted) == list(range(epochs * ROWS))
    assert set(counted.values()) == {1}
    for key in {one["k"] for one in found}:
        numbers = [one["n"] for one in found if one["k"] == key]
        assert numbers == sorted(numbers)


@pytest.mark.parametrize("point", ["amid rows", "before commit", "behind commit"])
def test_broker_killed_amid_a_publication(
    broker: Any, topic: str, run: Run, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    for epoch in range(3):
        run.stage(epoch, rows(epoch * ROWS, ROWS))
    publisher = run.start()
    run.publish(publisher, 0)
    killed = threading.Lock()

    def kill() -> None:
        if killed.acquire(blocking=False):
            broker.kill()
            threading.Timer(2.0, broker.start).start()

    _arm(monkeypatch, point, kill)
    until_published(run, publisher, 1)
    assert killed.locked()
    until_published(run, publisher, 2)
    check(broker, topic, 3)


def _arm(monkeypatch: pytest.MonkeyPatch, point: str, kill: Any) -> None:
    """Kill the broker the first time that a lane gets there."""
    commit, transact = TransactionalLane._commit, TransactionalLane._transact

    def committing(lane: TransactionalLane, sender: Any) -> None:
        if point == "before commit":
            kill()
        commit(lane, sender)
        if point == "behind commit":
            kill()

    def transacting(lane: TransactionalLane, marker: Any, chunks: Any) -> None:
        def broken() -> Iterator[Any]:
            yield from chunks
            kill()

        transact(lane, marker, broken() if point == "amid rows" else chunks)

    monkeypatch.setattr(TransactionalLane, "_commit", committing)
    monkeypatch.setattr(TransactionalLane, "_transact", transacting)


def test_a_broker_that_is_away_is_asked_again(broker: Any, topic: str, run: Run) -> None:
    run.stage(0, rows(0, ROWS))
    run.stage(1, rows(ROWS, ROWS))
    publisher = run.start()
    run.publish(publisher, 0)
    # A commit is acknowledged before readers see it; this test is about what comes later.
    check(broker, topic, 1)
    broker.kill()
    with pytest.raises(SinkError) as raised:
        run.publish(publisher, 1)
    assert raised.value.retryable
    assert "cannot" in str(raised.value)
    broker.start()
    until_published(run, publisher, 1)
    check(broker, topic, 2)


def without_authority(options: dict[str, str]) -> dict[str, str]:
    """Options with which the broker's certificate is not trusted."""
    return {name: value for name, value in options.items() if name != "ssl.ca.location"}


def test_a_start_that_does_not_trust_the_broker_is_refused(
    secure_kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    options = without_authority(secure_kafka.secure_options())
    run = Run(KafkaSink(secure_kafka.secure_address, topic, options=options), tmp_path)
    with pytest.raises(SinkRefused, match="certificate verify failed"):
        run.start()


@pytest.mark.parametrize(
    "guarantee", [DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE]
)
def test_a_lane_with_a_wrong_password_is_refused(
    secure_kafka: Kafka, guarantee: DeliveryGuarantee
) -> None:
    """Such as one that was changed since the start."""
    settings = LaneSettings(
        bootstrap=secure_kafka.secure_address,
        options={**secure_kafka.secure_options(), "sasl.password": "wrong"},
        guarantee=guarantee,
        identity=Marker("incarnation", "out", 0, lanes=1, fence=1, epoch=-1),
        control_topic="control",
        control_partition=0,
        transaction_timeout_ms=60_000,
        patience_s=7.0,
    )
    with pytest.raises(SinkRefused, match=r"(?i)authentication"):
        opened_lane(settings).publish(0, lambda: [Chunk("out", None, [b"v"], [b"k"], [0])])
