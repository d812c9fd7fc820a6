"""What a lane asks of its client, and what it does without a broker."""

import logging
import time
from typing import Any

import pytest

from headrace.connectors.kafka.writing import lane as lane_module
from headrace.connectors.kafka.writing.lane import LaneSettings, TransactionalLane, opened_lane
from headrace.connectors.kafka.writing.markers import Marker
from headrace.connectors.kafka.writing.records import Chunk
from headrace.endpoints import DeliveryGuarantee
from headrace.errors import SinkError

NOWHERE = "127.0.0.1:1"
ROWS = Chunk("out", None, [b"value"], [b"key"], [0])


def settings(guarantee: DeliveryGuarantee, **more: Any) -> LaneSettings:
    return LaneSettings(
        bootstrap=NOWHERE,
        options=more.pop("options", {}),
        guarantee=guarantee,
        identity=Marker("incarnation", "out", 0, lanes=1, fence=1, epoch=-1),
        control_topic="control",
        control_partition=0,
        transaction_timeout_ms=60_000,
        **more,
    )


def test_options_of_the_user_win_over_ours() -> None:
    ours = TransactionalLane(settings(DeliveryGuarantee.EXACTLY_ONCE))._config()
    assert ours["message.timeout.ms"] == ours["transaction.timeout.ms"] == 60_000
    told = settings(DeliveryGuarantee.EXACTLY_ONCE, options={"message.timeout.ms": "5000"})
    assert TransactionalLane(told)._config()["message.timeout.ms"] == "5000"


def test_without_a_promise_a_broker_that_is_away_is_told_of_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lane_module, "_NO_PROMISE_S", 0.6)
    lane, began = opened_lane(settings(DeliveryGuarantee.NONE)), time.monotonic()
    with caplog.at_level(logging.WARNING, "headrace.kafka"):
        lane.publish(3, lambda: [ROWS])
    assert time.monotonic() - began < 10
    assert "rows of epoch 3 are given up" in caplog.text


def test_with_a_promise_a_broker_that_is_away_is_an_error_to_repeat() -> None:
    lane = opened_lane(settings(DeliveryGuarantee.AT_LEAST_ONCE, patience_s=0.6))
    with pytest.raises(SinkError, match="cannot be delivered") as raised:
        lane.publish(3, lambda: [ROWS])
    assert raised.value.retryable
