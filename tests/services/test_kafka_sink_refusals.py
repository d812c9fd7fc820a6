"""Rows that brokers will never take: the job ends and says so, and does not ask again for ever."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.kafka import KafkaSink
from headrace.errors import SinkRefused
from tests.connectors.kafka.publishing_run import Run, rows
from tests.services.kafka_sinks import committed
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services

GUARANTEES = [hr.DeliveryGuarantee.EXACTLY_ONCE, hr.DeliveryGuarantee.AT_LEAST_ONCE]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_timestamp_too_far_away_is_refused(kafka, topic, guarantee, tmp_path: Path) -> None:
    Topics(kafka.bootstrap).make(topic, 1, **{"message.timestamp.after.max.ms": "3600000"})
    schema = pa.schema([("k", pa.string()), ("at", pa.timestamp("us", "UTC"))])
    sink = KafkaSink(kafka.bootstrap, topic, timestamp="at", guarantee=guarantee)
    run = Run(sink, tmp_path, schema=schema)
    at = datetime.now(UTC) + timedelta(days=2)
    run.stage(0, pa.RecordBatch.from_pylist([{"k": "a", "at": at}], schema=schema))
    with pytest.raises(SinkRefused, match=r"raise message\.timestamp\.after\.max\.ms"):
        run.publish(run.start(), 0)
    run.close()


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_row_without_a_key_for_a_compacted_topic_is_refused(
    kafka, topic, guarantee, tmp_path: Path
) -> None:
    Topics(kafka.bootstrap).make(topic, 1, **{"cleanup.policy": "compact"})
    run = Run(KafkaSink(kafka.bootstrap, topic, key="k", guarantee=guarantee), tmp_path)
    batch = rows(0, 3)
    run.stage(0, batch.set_column(0, batch.schema.field(0), pa.array(["a", None, "b"])))
    publisher = run.start()
    with pytest.raises(SinkRefused, match=r"takes none without a key.*stay staged"):
        run.publish(publisher, 0)
    if guarantee is hr.DeliveryGuarantee.EXACTLY_ONCE:
        assert committed(kafka.bootstrap, topic) == []
    run.close()


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_without_a_key_is_refused_at_the_start(
    kafka, topic, policy: str, tmp_path: Path
) -> None:
    Topics(kafka.bootstrap).make(topic, 1, **{"cleanup.policy": policy})
    with pytest.raises(SinkRefused, match=f"topic '{topic}' is compacted .* with key="):
        Run(KafkaSink(kafka.bootstrap, topic), tmp_path).start()


def test_limits_of_topics_that_rows_name_are_the_users_to_say(kafka, topic, tmp_path: Path) -> None:
    """A lane sends to any of them; where one takes less or more than a client's 1,000,000 bytes, the error says so."""
    Topics(kafka.bootstrap).make(f"{topic}-small", 1, **{"max.message.bytes": "20000"})
    Topics(kafka.bootstrap).make(f"{topic}-big", 1, **{"max.message.bytes": "4000000"})
    schema = pa.schema([("to", pa.string()), ("text", pa.string())])
    small = pa.record_batch(
        [[f"{topic}-small"] * 1_000, [os.urandom(40).hex() for _ in range(1_000)]], schema
    )
    big = pa.record_batch([[f"{topic}-big"], ["x" * 2_000_000]], schema)
    for batch, words, limit in [
        (small, r"takes less: say with \"message\.max\.bytes\"", 20_000),
        (big, r"takes 1,000,000: .* in options= if .* rows name their topics", 4_000_000),
    ]:
        run = Run(KafkaSink(kafka.bootstrap, topic_column="to"), tmp_path / str(limit), schema)
        run.stage(0, batch)
        with pytest.raises(SinkRefused, match=words):
            run.publish(run.start(), 0)
        options = {"message.max.bytes": str(limit)}
        run.sink = KafkaSink(kafka.bootstrap, topic_column="to", options=options)
        run.publish(run.start(), 0)
        run.close()
        assert len(committed(kafka.bootstrap, batch["to"][0].as_py())) == len(batch)
