"""A source in a job on Spark: what a group and the user are told, idle partitions, epochs run again over another topic."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.kafka.reading.consumers import _RESTS_AFTER_S
from headrace.connectors.memory import MemorySink
from headrace.errors import HeadraceError, InputError
from tests.services.kafka_topics import SCHEMA, Topics, source, until

pytestmark = [pytest.mark.services, pytest.mark.spark]


def job(root: Path, source: Any, change: Any = None) -> tuple[hr.Environment, MemorySink]:
    env = hr.Environment("reads", checkpoint=root / "state", restart=hr.Restart.never(), shards=1)
    rows, sink = env.from_source(source, uid="in"), MemorySink()
    rows.map(change or (lambda row: row), schema=SCHEMA, uid="change").sink_to(sink, uid="out")
    return env, sink


def test_the_group_of_a_job_that_has_caught_up_lags_behind_by_nothing(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    topics = Topics(kafka.bootstrap)
    topics.make(topic)
    topics.send(topic, range(7))
    env, _ = job(tmp_path, source(kafka, topic, group=topic))
    handle = env.start()
    try:
        until(lambda: topics.committed(topic, topic, 1) == [7], 60)
    finally:
        handle.stop(timeout=60)


def test_a_gap_that_is_skipped_is_told_where_the_job_was_started(
    kafka: Any, topic: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The process that notices it has no terminal."""
    topics = Topics(kafka.bootstrap)
    topics.make(topic)
    lenient = source(kafka, topic, group=topic, on_data_loss="skip")
    for end in (5, 20):
        # A consumer that the last start left would fetch what is to be cut off, until it comes to rest.
        time.sleep(2.5 * _RESTS_AFTER_S)
        topics.send(topic, range(end))
        topics.cut(topic, 0, end - 1)
        handle = job(tmp_path, lenient)[0].start()
        try:
            until(lambda: topics.committed(topic, topic, 1)[0] >= end, 60)  # noqa: B023 - called here
        finally:
            handle.stop(timeout=60)
    said = capfd.readouterr().err
    assert "headrace: the offsets 5 to 18 of" in said
    assert "skipped, as on_data_loss says" in said


def test_a_partition_without_records_holds_windows_back_until_it_is_idle(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    topics, noon = Topics(kafka.bootstrap), datetime(2026, 1, 1, 12, tzinfo=UTC)
    topics.make(topic, 2)
    for second in (0, 1, 30):
        millis = int((noon + timedelta(seconds=second)).timestamp() * 1000)
        topics.send(topic, [7], timestamp=millis)
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(timedelta(0)).with_record_timestamps()
    env, counts = hr.Environment("idle", checkpoint=tmp_path / "state", shards=1), MemorySink()
    idle = strategy.with_idleness(timedelta(seconds=2))
    rows = env.from_source(source(kafka, topic), watermarks=idle, uid="in").key_by("n")
    windows = rows.window(hr.windows.Tumbling(timedelta(seconds=10)))
    windows.aggregate(count=hr.count(), uid="count").sink_to(counts, uid="out")
    handle = env.start()
    try:
        until(lambda: [row["count"] for row in counts.to_pylist()] == [2], 60)
    finally:
        handle.stop(timeout=60)


def test_an_epoch_is_not_run_again_over_another_topic_of_the_name(
    kafka: Any, topic: str, tmp_path: Path
) -> None:
    """What the offset log says was planned for the topic that is gone; the new one has those offsets too."""

    def breaks(row: Any) -> Any:
        raise ValueError("broken")

    topics = Topics(kafka.bootstrap)
    topics.make(topic)
    topics.send(topic, range(10))
    watched = source(kafka, topic, stop="latest")
    with pytest.raises(HeadraceError, match="broken"):
        job(tmp_path, watched, breaks)[0].execute()
    topics.remove(topic)
    topics.make(topic)
    topics.send(topic, range(100, 120))
    env, sink = job(tmp_path, watched)
    with pytest.raises(InputError, match="deleted and created again"):
        env.execute()
    assert sink.to_pylist() == []
