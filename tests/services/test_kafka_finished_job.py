"""A job whose input has ended, started again: nothing is written twice, and new input is not passed over in silence."""

from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.connectors.kafka import KafkaSink, KafkaSource
from headrace.errors import InputError
from tests.services.kafka_sinks import committed, values
from tests.services.kafka_topics import SCHEMA, Topics

pytestmark = [pytest.mark.services, pytest.mark.spark]


def job(root: Path, bootstrap: str, topic: str, stop: Any) -> hr.Environment:
    env = hr.Environment("ended", checkpoint=root / "state", restart=hr.Restart.never(), shards=1)
    rows = env.from_source(KafkaSource(bootstrap, topics=topic, schema=SCHEMA, stop=stop), uid="in")
    rows.sink_to(KafkaSink(bootstrap, f"{topic}-out"), uid="out")
    return env


def test_a_job_that_has_ended_writes_nothing_twice(kafka, topic, tmp_path: Path) -> None:
    topics = Topics(kafka.bootstrap)
    topics.make(topic)
    topics.make(f"{topic}-out")
    topics.send(topic, range(50))
    job(tmp_path, kafka.bootstrap, topic, "latest").execute()
    topics.send(topic, range(50, 60))
    # "Latest" was made into an offset by the first start.
    job(tmp_path, kafka.bootstrap, topic, "latest").execute()
    with pytest.raises(InputError, match=r"is finished .* 'in' has 10 new positions"):
        job(tmp_path, kafka.bootstrap, topic, None).execute()
    found = values(committed(kafka.bootstrap, f"{topic}-out"))
    assert sorted(one["n"] for one in found) == list(range(50))
