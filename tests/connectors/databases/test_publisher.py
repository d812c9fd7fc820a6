"""The table publisher on a database that loses connections: every epoch once and whole, and no row of a start that was replaced."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.endpoints import Publisher, Receipt, SinkContext
from headrace.errors import HeadraceError, SinkError, SinkRefused
from headrace.testing.database import Database
from headrace.testing.memory_disk import memory_disk

CHANGING = pa.schema({"id": pa.int64(), "v": pa.string(), "change": pa.string()})
ADDING = pa.schema({"id": pa.int64(), "v": pa.string()})
UPSERT: dict[str, Any] = {"mode": "upsert", "key": "id"}
Row = dict[str, Any]


def change(sign: str, id: int, v: str) -> Row:
    return {"id": id, "v": v, "change": sign}


def row(id: int, v: str) -> Row:
    return {"id": id, "v": v}


#: What each epoch writes in a mode, and the rows that the table has then.
ADDED = [
    ([row(1, "a"), row(2, "b")],) * 2,
    ([row(1, "c")], [row(1, "a"), row(2, "b"), row(1, "c")]),
]
CHANGED = [
    ([change("+I", 1, "a"), change("+I", 2, "b")], [row(1, "a"), row(2, "b")]),
    (
        [change("-D", 2, "b"), change("-U", 1, "a"), change("+U", 1, "c"), change("+I", 3, "d")],
        [row(1, "c"), row(3, "d")],
    ),
]


class World:
    """A table, and the starts of one job that writes to it."""

    def __init__(
        self, spool: Path, *, schema: pa.Schema = ADDING, incarnation: str = "i", **options: Any
    ) -> None:
        self.database = Database()
        self.sink = self.database.sink("t", create=True, **options)
        self.context = SinkContext("job", incarnation, "out", schema, spool)
        self.fence = 0

    def started(self, *, fence: int | None = None) -> Publisher:
        self.fence = self.fence + 1 if fence is None else fence
        return self.sink.publisher(self.of_start(self.fence))

    def of_start(self, fence: int) -> SinkContext:
        old = self.context
        return SinkContext(old.job, old.incarnation, old.uid, old.schema, old.spool, fence)

    def stage(self, epoch: int, *rows: Row) -> list[Receipt]:
        receipts: list[Receipt] = []
        for task, part in (("a", rows[:1]), ("b", rows[1:])):
            stager = self.sink.stager(self.context, epoch, task)
            stager.write(pa.RecordBatch.from_pylist(list(part), self.context.schema))
            receipts += stager.close()
        return receipts

    @property
    def rows(self) -> list[Row]:
        return self.database.rows("t")


@pytest.fixture
def spool() -> Iterator[Path]:
    """In memory, where that can be: staged files are synced one by one, some thousand in all."""
    with tempfile.TemporaryDirectory(dir=memory_disk()) as directory:
        yield Path(directory)


@pytest.mark.parametrize("anew", [False, True], ids=["the same start again", "another start"])
@pytest.mark.parametrize("mode", ["insert", "upsert"])
@pytest.mark.parametrize(
    ("step", "applied"),
    [("statement", False), ("write", False), ("commit", False), ("commit", True)],
)
def test_a_lost_connection_neither_loses_nor_doubles_rows(
    step: Any, applied: bool, mode: str, anew: bool, spool: Path
) -> None:
    """The connection is lost at every step in turn; a reader sees whole epochs all the while."""
    schema, options, epochs = (
        (ADDING, {}, ADDED) if mode == "insert" else (CHANGING, UPSERT, CHANGED)
    )
    for after in itertools.count():
        world = World(spool / str(after), schema=schema, **options)
        world.database.fail(step, after=after, applied=applied)
        publish_all(world, epochs, anew=anew)
        if world.database.unreached:
            break
    assert after >= {"statement": 15, "write": 2, "commit": 2}[step]


def publish_all(world: World, epochs: list[tuple[list[Row], list[Row]]], *, anew: bool) -> None:
    """Publish as the committer does, or after an error as the recovery of another start does."""
    publisher, shown = asked_again(world.started), [[], *(rows for _, rows in epochs)]
    for epoch, (written, _) in enumerate(epochs):
        receipts = world.stage(epoch, *written)
        try:
            publisher.publish(epoch, receipts)
        except SinkRefused:
            raise
        except SinkError:
            assert world.rows in shown[epoch : epoch + 2]
            publisher = asked_again(world.started) if anew else publisher
            publisher.publish(epoch, receipts)
        assert world.rows == shown[epoch + 1]
        assert publisher.published() == epoch


def asked_again(start: Callable[[], Publisher]) -> Publisher:
    """A start, and another one if the database was away."""
    try:
        return start()
    except SinkRefused:
        raise
    except SinkError:
        return start()


@pytest.mark.parametrize("anew", [False, True], ids=["the same start", "another start"])
def test_an_epoch_that_is_shown_does_not_need_its_staged_rows(anew: bool, spool: Path) -> None:
    world = World(spool)
    publisher = world.started()
    receipts = [world.stage(epoch, row(epoch, "a")) for epoch in range(2)]
    for epoch in range(2):
        publisher.publish(epoch, receipts[epoch])
    assert not list(spool.rglob("*.arrow"))
    publisher = world.started() if anew else publisher
    for epoch in range(2):
        publisher.publish(epoch, receipts[epoch])
    assert world.rows == [row(0, "a"), row(1, "a")]
    assert publisher.published() == 1


def test_a_start_that_was_replaced_writes_nothing(spool: Path) -> None:
    world = World(spool)
    first = world.started()
    receipts = world.stage(0, row(1, "a"))
    second = world.started()
    with pytest.raises(SinkRefused, match=r"another start .*\(number 2\).* this one \(number 1\)"):
        first.publish(0, receipts)
    with pytest.raises(SinkRefused, match="another start"):
        world.started(fence=1)
    assert world.rows == []
    second.publish(0, receipts)
    assert world.rows == [row(1, "a")]


def test_what_a_replaced_start_has_in_flight_is_undone_or_known_to_its_successor(
    spool: Path,
) -> None:
    for applied in (False, True):
        world = World(spool / str(applied))
        first, receipts = world.started(), world.stage(0, row(1, "a"))
        world.database.fail("commit", applied=applied)
        with pytest.raises(SinkError):
            first.publish(0, receipts)
        second = world.started()
        assert second.published() == (0 if applied else None)
        with pytest.raises(SinkRefused, match="another start"):
            first.publish(0, receipts)
        second.publish(0, receipts)
        assert world.rows == [row(1, "a")]


def test_epochs_that_are_missing_between_are_refused(spool: Path) -> None:
    world = World(spool)
    publisher = world.started()
    publisher.publish(3, world.stage(3, row(3, "a")))
    receipts = world.stage(5, row(5, "a"))
    with pytest.raises(SinkRefused, match=r"shows epoch 3 .* is given epoch 5") as caught:
        publisher.publish(5, receipts)
    assert world.rows == [row(3, "a")]
    advice = str(caught.value)
    world.database.execute(advice[advice.index("DELETE FROM") :])
    publisher.publish(5, receipts)
    assert world.rows == [row(3, "a"), row(5, "a")]


def test_an_epoch_without_rows_is_shown_too(spool: Path) -> None:
    world = World(spool)
    publisher = world.started()
    for epoch in range(3):
        publisher.publish(epoch, world.stage(epoch, row(epoch, "a")) if epoch != 1 else [])
    assert world.rows == [row(0, "a"), row(2, "a")]
    assert world.started().published() == 2


def test_sinks_and_incarnations_have_their_own_markers(spool: Path) -> None:
    world = World(spool)
    world.started().publish(7, world.stage(7, row(7, "a")))
    for incarnation, uid in (("i", "other"), ("j", "out")):
        owner = SinkContext("job", incarnation, uid, ADDING, spool / uid / incarnation, fence=1)
        world.context = owner
        publisher = world.sink.publisher(owner)
        assert publisher.published() is None
        publisher.publish(0, world.stage(0, row(0, uid)))
    assert world.rows == [row(7, "a"), row(0, "other"), row(0, "out")]


def test_a_database_that_is_away_is_asked_again(spool: Path) -> None:
    world = World(spool)
    world.database.fail("connect", times=2)
    for _ in range(2):
        with pytest.raises(SinkError, match="is away") as away:
            world.started()
        assert away.value.retryable
    publisher, receipts = world.started(), world.stage(0, row(1, "a"))
    world.database.fail("write")
    world.database.fail("connect", times=2)
    for words in ("lost before rows were written", "is away", "is away"):
        with pytest.raises(SinkError, match=words):
            publisher.publish(0, receipts)
        assert world.rows == []
    publisher.publish(0, receipts)
    assert world.rows == [row(1, "a")]


def test_rows_that_were_staged_with_other_columns_are_refused(spool: Path) -> None:
    world = World(spool)
    world.database.sink("t", create=True).publisher(world.of_start(0)).close()
    receipts = world.stage(0, row(1, "a"))
    world.context = SinkContext("job", "i", "out", pa.schema({"id": pa.int64()}), spool)
    with pytest.raises(HeadraceError, match=r"staged with other columns .* run the job as it was"):
        world.started().publish(0, receipts)
    assert world.rows == []
