"""What a lane asks of its client, what it sends in one transaction, and what it does without a broker."""

import logging
import time
from dataclasses import replace
from typing import Any

import pytest

from headrace.connectors.kafka.writing import lane as lane_module
from headrace.connectors.kafka.writing.lane import LaneSettings, TransactionalLane, opened_lane
from headrace.connectors.kafka.writing.markers import Marker
from headrace.connectors.kafka.writing.records import Chunk
from headrace.endpoints import DeliveryGuarantee
from headrace.errors import SinkError, SinkRefused
from headrace.testing.log import Log

NOWHERE = "127.0.0.1:1"
ROWS = Chunk("out", None, [b'{"n":1}'], [b"key"], [0])
EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE


@pytest.fixture
def log() -> Log:
    made = Log()
    made.topic("out")
    made.topic("control")
    return made


def settings(address: str, guarantee: DeliveryGuarantee = EXACTLY_ONCE, **more: Any) -> Any:
    return LaneSettings(
        bootstrap=address,
        options=more.pop("options", {}),
        guarantee=guarantee,
        identity=Marker("incarnation", "out", 0, lanes=1, fence=1, epoch=-1),
        control_topic="control",
        control_partition=0,
        transaction_timeout_ms=60_000,
        **more,
    )


def test_options_of_the_user_win_over_ours() -> None:
    ours = TransactionalLane(settings(NOWHERE))._config()
    assert ours["message.timeout.ms"] == ours["transaction.timeout.ms"] == 60_000
    theirs = settings(NOWHERE, options={"message.timeout.ms": "5000"})
    assert TransactionalLane(theirs)._config()["message.timeout.ms"] == "5000"


def test_rows_and_their_marker_are_seen_at_the_same_commit(log: Log) -> None:
    seen: list[tuple[int, int]] = []

    def look() -> None:
        seen.append((len(log.read("out")), log.read("control")[-1]["epoch"]))

    log.at("commit", look, moment="after", times=10)
    lane = opened_lane(settings(log.address))
    for epoch in (0, 1):
        lane.publish(epoch, lambda: [ROWS])
    # The first one is of the start itself.
    assert seen == [(0, -1), (1, 0), (2, 1)]


def test_rows_without_their_commit_are_not_seen_and_neither_is_the_marker(log: Log) -> None:
    lane = opened_lane(settings(log.address))
    lane.open()
    log.fail("commit", times=2)
    with pytest.raises(SinkError):
        lane.publish(0, lambda: [ROWS])
    assert log.read("out") == []
    assert [row["epoch"] for row in log.read("control")] == [-1]
    lane.drop()
    again = opened_lane(settings(log.address))
    again.open()
    assert again.highest() is None


def test_a_lane_whose_sink_has_another_number_of_lanes_is_refused(log: Log) -> None:
    opened_lane(settings(log.address)).open()
    more = settings(log.address)
    more = replace(more, identity=replace(more.identity, lanes=2, fence=2))
    with pytest.raises(SinkRefused, match="begun with 1 lanes and has 2 now"):
        opened_lane(more).open()


def test_without_a_promise_a_broker_that_is_away_is_told_of_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lane_module, "_NO_PROMISE_S", 0.1)
    lane, began = opened_lane(settings(NOWHERE, DeliveryGuarantee.NONE)), time.monotonic()
    with caplog.at_level(logging.WARNING, "headrace.kafka"):
        lane.publish(3, lambda: [ROWS])
    assert time.monotonic() - began < 10
    assert "rows of epoch 3 are given up" in caplog.text


def test_with_a_promise_a_broker_that_is_away_is_waited_for_and_then_an_error_to_repeat() -> None:
    lane = opened_lane(settings(NOWHERE, AT_LEAST_ONCE, patience_s=0.1))
    with pytest.raises(SinkError, match="cannot be delivered") as raised:
        lane.publish(3, lambda: [ROWS])
    assert raised.value.retryable


@pytest.mark.parametrize("guarantee", [EXACTLY_ONCE, AT_LEAST_ONCE])
def test_a_lane_continues_when_the_broker_is_back(guarantee: DeliveryGuarantee, log: Log) -> None:
    lane = opened_lane(settings(log.address, guarantee))
    with pytest.raises(SinkError, match="Connection refused") as raised, log.away():
        lane.publish(3, lambda: [ROWS])
    assert raised.value.retryable
    lane.publish(3, lambda: [ROWS])
    assert log.read("out") == [{"n": 1}]
