"""Kafka to Kafka on Spark, with epochs that workers publish between epochs that the driver publishes."""

from pathlib import Path

import pytest

from headrace.connectors.kafka.writing import publishing
from tests.crash import log_job
from tests.crash.log_checker import CLEAN, fill, in_log, judge

pytestmark = [pytest.mark.services, pytest.mark.spark]

ROWS = 12_000


def test_lanes_move_between_the_driver_and_the_workers(
    kafka, topic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread: list[int] = []
    here: list[int] = []
    by_workers = publishing.KafkaPublisher._spread
    by_driver = publishing.KafkaPublisher._publish_here

    def every_third(self, receipts) -> bool:
        return (len(spread) + len(here)) % 3 == 1

    def spread_it(self, epoch, *rest) -> None:
        by_workers(self, epoch, *rest)
        spread.append(epoch)

    def publish_it(self, epoch, *rest) -> None:
        by_driver(self, epoch, *rest)
        here.append(epoch)

    monkeypatch.setattr(publishing.KafkaPublisher, "_is_large", every_third)
    monkeypatch.setattr(publishing.KafkaPublisher, "_spread", spread_it)
    monkeypatch.setattr(publishing.KafkaPublisher, "_publish_here", publish_it)
    names = {"LOG_IN": f"{topic}-in", "LOG_OUT": f"{topic}-out", "LOG_EPOCH_ROWS": "2000"}
    fill(kafka.bootstrap, names["LOG_IN"], names["LOG_OUT"], ROWS)
    log_job.build(tmp_path, {"LOG_KAFKA": kafka.bootstrap, **names}).execute()
    assert judge(in_log(kafka.bootstrap, names["LOG_OUT"]), ROWS) == CLEAN
    assert len(spread) >= 2, "the workers published epochs"
    assert len(here) >= 2, "so did the driver"
