"""The control topic, which proves what a sink has published: where it is, and that it keeps its markers."""

from pathlib import Path

import pytest

from headrace.connectors.kafka import KafkaSink
from headrace.errors import CheckpointMismatch, SinkRefused
from tests.connectors.kafka.publishing_run import Run, rows
from tests.services.kafka_sinks import committed
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services


@pytest.fixture
def topics(kafka, topic: str) -> Topics:
    made = Topics(kafka.bootstrap)
    made.make(topic, 2)
    return made


def sink(kafka, topic: str, control: str, **options) -> KafkaSink:
    return KafkaSink(kafka.bootstrap, topic, key="k", control_topic=control, **options)


def test_another_control_topic_is_refused(kafka, topic, topics, tmp_path: Path) -> None:
    """It knows nothing of an epoch that was published before, which would be there twice."""
    topics.make(f"{topic}-other", 4, **{"cleanup.policy": "compact"})
    run = Run(sink(kafka, topic, f"{topic}-markers"), tmp_path)
    run.stage(0, rows(0, 10))
    run.publish(run.start(), 0)
    run.sink = sink(kafka, topic, f"{topic}-other")
    with pytest.raises(CheckpointMismatch, match=f"control_topic='{topic}-markers'"):
        run.publish(run.start(), 0)
    run.close()
    assert len(committed(kafka.bootstrap, topic)) == 10


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_control_topic_that_forgets_is_refused(
    kafka, topic, topics, policy: str, tmp_path: Path
) -> None:
    topics.make(f"{topic}-markers", 1, **{"cleanup.policy": policy})
    with pytest.raises(SinkRefused, match=rf"cleanup\.policy={policy}.*set it to compact"):
        Run(sink(kafka, topic, f"{topic}-markers"), tmp_path).start()


def test_a_control_topic_that_was_made_again_too_small_is_refused(
    kafka, topic, topics, tmp_path: Path
) -> None:
    run = Run(sink(kafka, topic, f"{topic}-markers"), tmp_path)
    run.start()
    run.close()
    topics.remove(f"{topic}-markers")
    topics.make(f"{topic}-markers", 1, **{"cleanup.policy": "compact"})
    with pytest.raises(SinkRefused, match=r"is gone.*4 partitions"):
        run.start()


def test_lanes_that_were_forgotten_are_not_guessed(kafka, topic, topics, tmp_path: Path) -> None:
    """Their number would come from a topic that has grown, and rows would change lanes amid an epoch."""
    run = Run(sink(kafka, topic, f"{topic}-markers"), tmp_path)
    run.start()
    (tmp_path / "lanes.json").unlink()
    topics.grow(topic, 4)
    with pytest.raises(SinkRefused, match="begun with 2 lanes and has 4 now"):
        run.start()
    run.close()


def test_settings_of_lanes_show_no_secrets(kafka, topic, topics, tmp_path: Path) -> None:
    told = sink(kafka, topic, f"{topic}-markers", options={"sasl.password": "geh3im"})
    publisher = told.publisher(Run(told, tmp_path).context())
    assert "geh3im" not in f"{told!r} {told._plan!r} {publisher._settings!r}"  # type: ignore[attr-defined]
    publisher.close()
