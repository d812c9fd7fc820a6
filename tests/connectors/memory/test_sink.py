"""Results in memory: each row once, wherever the job's pieces run."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa

from headrace.connectors.memory import MemorySink
from headrace.connectors.memory.sink import KEPT_EPOCHS
from headrace.endpoints import Receipt, SinkContext

SCHEMA = pa.schema({"n": pa.int64()})


def context(tmp_path: Path, **changes: Any) -> SinkContext:
    fields = {"job": "job", "incarnation": "one", "uid": "result", "schema": SCHEMA}
    return SinkContext(**{**fields, "spool": tmp_path / "spool", **changes})


def stage(sink: MemorySink, owner: SinkContext, epoch: int, *numbers: int) -> list[Receipt]:
    worker = pickle.loads(pickle.dumps(sink))
    stager = worker.stager(owner, epoch, "task")
    stager.write(pa.record_batch({"n": list(numbers)}, SCHEMA))
    return list(stager.close())


def test_rows_arrive_with_their_epochs_and_not_before(tmp_path: Path) -> None:
    sink, owner = MemorySink(), context(tmp_path)
    publisher = sink.publisher(owner)
    receipts = [stage(sink, owner, epoch, epoch, 10 + epoch) for epoch in range(2)]
    assert sink.to_arrow().equals(SCHEMA.empty_table())
    for epoch in range(2):
        publisher.publish(epoch, receipts[epoch])
    assert sink.to_arrow().equals(pa.table({"n": [0, 10, 1, 11]}, SCHEMA))
    assert sink.to_pylist()[-1] == {"n": 11}
    assert len(sink) == 4


def test_publishing_again_adds_nothing(tmp_path: Path) -> None:
    sink, owner = MemorySink(), context(tmp_path)
    receipts = stage(sink, owner, 0, 1)
    for _ in range(2):
        sink.publisher(owner).publish(0, receipts)
    assert sink.to_pylist() == [{"n": 1}]


def test_a_copy_in_the_same_process_publishes_into_the_original(tmp_path: Path) -> None:
    sink, owner = MemorySink(), context(tmp_path)
    copy = pickle.loads(pickle.dumps(sink))
    copy.publisher(owner).publish(0, stage(sink, owner, 0, 1))
    assert sink.to_pylist() == [{"n": 1}]
    assert MemorySink().to_pylist() == []


def test_a_new_process_gets_the_last_rows_of_earlier_runs(tmp_path: Path) -> None:
    before, owner = MemorySink(), context(tmp_path)
    publisher = before.publisher(owner)
    receipts = []
    for epoch in range(40):
        receipts.append(stage(before, owner, epoch, epoch))
        publisher.publish(epoch, receipts[epoch])
    assert len(before) == 40
    settled = publisher.settled()
    assert settled == 39 - KEPT_EPOCHS
    after = MemorySink()
    again = after.publisher(owner)
    again.discard(frozenset(range(settled + 1, 40)))
    for epoch in range(settled + 1, 40):
        again.publish(epoch, receipts[epoch])
    assert after.to_pylist() == [{"n": n} for n in range(40 - KEPT_EPOCHS, 40)]


def test_the_spool_stays_short_and_holds_what_is_not_noted_yet(tmp_path: Path) -> None:
    sink, owner = MemorySink(), context(tmp_path)
    publisher = sink.publisher(owner)
    assert publisher.settled() == -1
    for epoch in range(40):
        noted = publisher.settled()
        publisher.publish(epoch, stage(sink, owner, epoch, epoch))
        staged = sorted(int(path.name) for path in owner.spool.iterdir())
        # A crash here goes on from what was noted before this epoch.
        assert staged == list(range(noted + 1, epoch + 1))
        assert len(staged) <= KEPT_EPOCHS + 1


def test_epochs_shown_again_do_not_move_back_what_is_settled(tmp_path: Path) -> None:
    sink, owner = MemorySink(), context(tmp_path)
    receipts = {epoch: stage(sink, owner, epoch, epoch) for epoch in range(30)}
    for _ in range(2):
        publisher = sink.publisher(owner)
        for epoch, staged in receipts.items():
            publisher.publish(epoch, staged)
        assert publisher.settled() == 29 - KEPT_EPOCHS
    assert len(sink) == 30


def test_a_new_incarnation_begins_without_rows(tmp_path: Path) -> None:
    sink = MemorySink()
    for incarnation in ("one", "two"):
        owner = context(tmp_path, incarnation=incarnation, spool=tmp_path / incarnation)
        sink.publisher(owner).publish(0, stage(sink, owner, 0, 1))
    assert sink.to_pylist() == [{"n": 1}]


def test_two_steps_may_share_a_sink(tmp_path: Path) -> None:
    sink = MemorySink()
    owners = [context(tmp_path, uid=uid, spool=tmp_path / uid) for uid in ("a", "b")]
    for number, owner in enumerate(owners):
        sink.publisher(owner).publish(0, stage(sink, owner, 0, number))
    assert sink.to_pylist() == [{"n": 0}, {"n": 1}]


def test_columns_are_known_before_rows(tmp_path: Path) -> None:
    sink = MemorySink()
    sink.validate(SCHEMA)
    assert sink.to_arrow().schema == SCHEMA
    assert sink
