"""Pipelines from log to log, killed and refused wherever they ask brokers for anything: each row is there once."""

from collections import defaultdict
from datetime import timedelta
from typing import Any, get_args

import pyarrow as pa
import pytest

import headrace as hr
from headrace._local.job import POINTS, CrashPoint
from headrace.connectors.kafka import KafkaSink, KafkaSource, NewTopic
from headrace.errors import InputError
from headrace.testing import LocalResult, run_local
from headrace.testing.log import Log
from headrace.testing.log.faults import Moment, Request

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])
ROWS = [{"k": f"key-{n % 12}", "n": n} for n in range(60)]
MARKERS = "headrace-markers"
SOON = timedelta(milliseconds=200)
#: Two lanes write their first markers, then publish epochs 0 to 3.
COMMITS = range(1, 11)


def filled(**options: Any) -> Log:
    log = Log(**options)
    log.topic("in", partitions=3)
    log.append("in", ROWS, key="k")
    return log


def copy(log: Log, **crashes: Any) -> LocalResult:
    """From topic to topic, in epochs of 15 rows, through two lanes to three partitions."""
    env = hr.Environment("copy", epochs=hr.Epochs(rows=15))
    source = KafkaSource(
        log.address, "in", schema=SCHEMA, stop="latest", group="g", read_timeout=SOON
    )
    sink = KafkaSink(log.address, "out", key="k", lanes=2, create=NewTopic(3))
    env.from_source(source, uid="in").sink_to(sink, uid="out")
    return run_local(env, **crashes)


def check(log: Log, times: int = 1) -> None:
    """A reader of committed records sees each row so often, in the partition of its key and in order."""
    assert sorted(row["n"] for row in log.read("out")) == sorted(list(range(60)) * times)
    found, given = by_key(log, "out"), by_key(log, "in")
    assert found == {key: numbers * times for key, numbers in given.items()}


def by_key(log: Log, topic: str) -> dict[Any, list[int]]:
    numbers = defaultdict(list)
    for record, row in zip(log.records(topic), log.read(topic), strict=True):
        numbers[record.partition, record.key].append(row["n"])
    return numbers


@pytest.mark.parametrize("epoch", [0, 1, 3])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_any_point_changes_nothing(point: CrashPoint, epoch: int) -> None:
    log = filled()
    assert copy(log, crashes=[(epoch, point)], tasks=2).restarts == 1
    check(log)


@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("nth", COMMITS)
def test_a_process_killed_at_any_commit_publishes_each_row_once(nth: int, moment: Moment) -> None:
    log = filled()
    log.kill("commit", moment=moment, nth=nth)
    assert copy(log).restarts == 1
    check(log)


@pytest.mark.parametrize("nth", [1, 2, 3, 30, 69, 70])
def test_a_process_killed_amid_its_rows_leaves_none_of_them(nth: int) -> None:
    log = filled()
    log.kill("append", nth=nth, moment="after")
    assert copy(log).restarts == 1
    check(log)
    assert len(log.read("out", "read_uncommitted")) >= 60


@pytest.mark.parametrize("nth", COMMITS)
def test_a_commit_whose_answer_is_lost_is_looked_up(nth: int) -> None:
    log = filled()
    log.fail("commit", moment="after", nth=nth)
    assert copy(log).restarts == 1
    check(log)
    assert log.read("out", "read_uncommitted") == log.read("out")


@pytest.mark.parametrize("asked", ["init", "append", "commit", "fetch", "groups"])
def test_brokers_that_do_not_answer_once_are_asked_again(asked: Request) -> None:
    log = filled()
    log.fail(asked)
    copy(log)
    check(log)
    assert log.unreached == 0


@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("asked", sorted(set(get_args(Request)) - {"abort"}))
def test_a_process_killed_at_any_request_is_started_again(asked: Request, moment: Moment) -> None:
    """Also at those of the first start."""
    log = filled()
    log.kill(asked, moment=moment)
    # Offsets of groups are committed on another thread, which may do so when all rows are published.
    assert copy(log).restarts in ({0, 1} if asked == "groups" else {1})
    assert log.unreached == 0
    check(log)


def test_a_transaction_that_timed_out_is_published_anew() -> None:
    """The brokers aborted it and fenced its producer, which has the lane back by the same name."""
    log = filled()
    log.at("commit", log.expire, nth=4)
    assert copy(log).restarts == 0
    check(log)
    assert len(log.read("out", "read_uncommitted")) > 60


def test_a_job_that_has_ended_has_its_rows_where_readers_see_them() -> None:
    """Brokers answer a commit before its marks are written."""
    log = filled(lag=2)
    copy(log, crashes=[(1, "published")])
    check(log)


@pytest.mark.parametrize("partition", range(4))
def test_a_marker_after_an_open_transaction_of_others_is_waited_for(partition: int) -> None:
    """Until it ends it hides our markers from readers of committed records."""
    log = filled()
    log.topic(MARKERS, 4, cleanup_policy="compact")
    log.open_transaction(MARKERS, partition).abort_after(waits=2)
    copy(log, crashes=[(1, "published"), (2, "published")])
    check(log)


def test_rows_of_aborted_and_open_transactions_are_not_read() -> None:
    log = filled()
    for partition in range(3):
        log.open_transaction("in", partition, [{"k": "x", "n": -1}]).abort()
        log.open_transaction("in", partition, [{"k": "x", "n": -2}])
        log.append("in", [{"k": "x", "n": -3}], partition=partition)
    copy(log)
    assert sorted(row["n"] for row in log.read("out")) == list(range(60))


def test_a_new_checkpoint_publishes_everything_again() -> None:
    log = filled()
    copy(log)
    copy(log)
    check(log, times=2)


def test_records_that_are_gone_before_they_were_read_fail_the_job() -> None:
    log = filled()
    log.at("commit", lambda: log.remove_before("in", 1, 20), nth=4)
    with pytest.raises(InputError, match=r"in-1.* are gone"):
        copy(log, crashes=[(1, "published")])


def test_a_topic_that_was_made_again_is_another_one() -> None:
    log = filled()

    def again() -> None:
        log.remove("in")
        log.topic("in", partitions=3)
        log.append("in", ROWS * 2, key="k")

    log.at("commit", again, nth=4)
    with pytest.raises(InputError, match="'in' was deleted and created again"):
        copy(log, crashes=[(1, "published")])


def test_offsets_are_committed_to_the_group() -> None:
    log = filled()
    copy(log)
    assert sum(log.committed("g").values()) == 60
