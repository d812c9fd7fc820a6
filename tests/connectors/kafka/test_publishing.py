"""Two starts of a job that want to publish the same epochs: whatever they do between each other's steps, rows are there once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.kafka import KafkaSink, NewTopic
from headrace.endpoints import Publisher
from headrace.errors import SinkError, SinkRefused
from headrace.testing.log import Log
from tests.connectors.kafka.publishing_run import Run, rows

TAKEN_OVER = "start 2 of this job has taken sink 'out' over; this is start 1"
EPOCHS = 3


def begun(log: Log, spool: Path, **options: Any) -> Run:
    """A job whose epochs of 40 rows are staged."""
    chosen = {"key": "k", "lanes": 2, "create": NewTopic(3), **options}
    run = Run(KafkaSink(log.address, "out", **chosen), spool)
    for epoch in range(EPOCHS):
        run.stage(epoch, rows(epoch * 40, 20), rows(epoch * 40 + 20, 20))
    return run


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def run(log: Log, tmp_path: Path) -> Iterator[Run]:
    made = begun(log, tmp_path)
    yield made
    made.close()


def through(run: Run, publisher: Publisher, first: int = 0) -> None:
    for epoch in range(first, EPOCHS):
        run.publish(publisher, epoch)


def numbers(log: Log) -> list[int]:
    return sorted(row["n"] for row in log.read("out"))


ALL = list(range(40 * EPOCHS))


def test_an_epoch_that_is_published_is_not_published_again(run: Run, log: Log) -> None:
    publisher = run.start()
    for epoch in (0, 0, 1, 1, 2, 2):
        run.publish(publisher, epoch)
    again = run.start()
    assert again.highest_seen() == 2
    through(run, again, 2)
    assert numbers(log) == ALL


def test_an_older_start_publishes_nothing_after_a_newer_one_began(run: Run, log: Log) -> None:
    zombie = run.start()
    run.publish(zombie, 0)
    heir = run.start()
    with pytest.raises(SinkRefused, match=TAKEN_OVER):
        run.publish(zombie, 1)
    assert numbers(log) == ALL[:40]
    # It took the lanes back to read their markers; the newer one notices and publishes on.
    through(run, heir, 1)
    assert numbers(log) == ALL


def test_an_older_start_that_wakes_up_right_before_its_commit_is_fenced(
    tmp_path: Path, log: Log
) -> None:
    run = begun(log, tmp_path, lanes=1)
    zombie, heirs = run.start(), []
    log.at("commit", lambda: heirs.append(run.start()))
    with pytest.raises(SinkRefused, match=TAKEN_OVER):
        run.publish(zombie, 0)
    seen = numbers(log)
    through(run, heirs[0])
    run.close()
    assert seen == []
    assert numbers(log) == ALL


def test_an_epoch_that_an_older_start_commits_last_of_all_is_seen(tmp_path: Path, log: Log) -> None:
    """It does so right before the newer one takes the lane over, which therefore reads the marker after that."""
    run = begun(log, tmp_path, lanes=1)
    zombie = run.start()
    run.publish(zombie, 0)
    log.at("init", lambda: run.publish(zombie, 1))
    heir = run.start()
    assert heir.highest_seen() == 1
    through(run, heir, 1)
    run.close()
    assert numbers(log) == ALL


def test_a_commit_whose_answer_is_lost_is_looked_up_by_the_same_start(run: Run, log: Log) -> None:
    publisher = run.start()
    log.fail("commit", moment="after")
    with pytest.raises(SinkError, match=r"lane . of sink 'out' cannot publish epoch 0") as raised:
        run.publish(publisher, 0)
    assert raised.value.retryable
    through(run, publisher)
    assert numbers(log) == ALL
    assert log.read("out", "read_uncommitted") == log.read("out")


def test_a_failed_epoch_is_aborted_at_once_and_nothing_waits_for_it(run: Run, log: Log) -> None:
    publisher = run.start()
    log.fail("append", "MSG_SIZE_TOO_LARGE", nth=5)
    with pytest.raises(SinkRefused, match="takes"):
        run.publish(publisher, 0)
    log.append("out", [{"n": -1}])
    assert -1 in numbers(log)


def test_rows_that_were_not_delivered_fail_an_epoch_without_transactions(
    tmp_path: Path, log: Log
) -> None:
    run = begun(log, tmp_path, guarantee="at_least_once")
    publisher = run.start()
    log.fail("append", nth=40)
    with pytest.raises(SinkError, match="cannot publish epoch 0") as raised:
        run.publish(publisher, 0)
    assert raised.value.retryable
    through(run, publisher)
    run.close()
    assert sorted(set(numbers(log))) == ALL


def test_a_queue_that_is_full_is_waited_for(tmp_path: Path, log: Log) -> None:
    run = begun(log, tmp_path, options={"queue.buffering.max.messages": "3"})
    through(run, run.start())
    run.close()
    assert numbers(log) == ALL
