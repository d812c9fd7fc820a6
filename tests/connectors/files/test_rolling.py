"""Rolling: several epochs in one file, none lost and none twice."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.connectors.files import FileSink
from headrace.connectors.files.layout import layout_of
from headrace.connectors.files.rolling import RollingPublisher
from headrace.endpoints import Receipt, SinkContext
from headrace.errors import CheckpointDamaged
from headrace.formats import format_named

SCHEMA = pa.schema({"n": pa.int64()})


class World:
    """One sink, and a publisher with a clock that the test moves."""

    def __init__(self, tmp_path: Path, format: str = "jsonl") -> None:
        self.out = tmp_path / "out"
        self.sink = FileSink(self.out, format)
        self.format = format_named(format)
        self.context = SinkContext("job", "0123456789abcdef", "results", SCHEMA, tmp_path / "spool")
        self.now = 0.0
        self.out.mkdir()
        self.restart()

    def restart(self) -> None:
        layout = layout_of(self.out, self.context)
        self.publisher = RollingPublisher(layout, self.format, 10.0, lambda: self.now)

    def stage(self, epoch: int, *numbers: int, schema: pa.Schema = SCHEMA) -> list[Receipt]:
        context = SinkContext("job", "0123456789abcdef", "results", schema, self.out)
        stager = self.sink.stager(context, epoch, "task")
        stager.write(pa.RecordBatch.from_pylist([{schema.names[0]: n} for n in numbers], schema))
        return list(stager.close())

    def shown(self) -> dict[str, list[int]]:
        paths = sorted(path for path in self.out.glob("*") if path.is_file())
        return {
            path.stem.removeprefix("01234567-results-"): [
                n for part in self.format.read(path, SCHEMA) for n in part.batch["n"].to_pylist()
            ]
            for path in paths
        }


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_epochs_of_an_interval_become_one_file(format: str, tmp_path: Path) -> None:
    world = World(tmp_path, format)
    for epoch in range(3):
        world.publisher.publish(epoch, world.stage(epoch, epoch, epoch))
        world.now += 4
    assert world.shown() == {}
    assert world.publisher.settled() == -1
    world.publisher.publish(3, world.stage(3, 3))
    assert world.shown() == {"000000000000-to-000000000003": [0, 0, 1, 1, 2, 2, 3]}
    assert world.publisher.settled() == 3


def test_flush_shows_what_is_held(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.publisher.publish(5, world.stage(5, 1))
    world.publisher.flush()
    world.publisher.flush()
    assert world.shown() == {"000000000005-to-000000000005": [1]}
    assert world.publisher.settled() == 5


def test_epochs_without_rows_settle_at_once_but_not_behind_held_ones(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.publisher.publish(0, [])
    assert world.publisher.settled() == 0
    world.publisher.publish(1, world.stage(1, 1))
    world.publisher.publish(2, [])
    assert world.publisher.settled() == 0
    world.publisher.flush()
    assert world.publisher.settled() == 2


@pytest.mark.parametrize("crash_after", range(6))
def test_after_a_crash_unsettled_epochs_come_again_and_appear_once(
    crash_after: int, tmp_path: Path
) -> None:
    world = World(tmp_path)
    receipts = {epoch: world.stage(epoch, epoch) for epoch in range(6)}
    for epoch in range(crash_after):
        world.publisher.publish(epoch, receipts[epoch])
        world.now += 4
    noted = world.publisher.settled()
    world.restart()
    outside = world.publisher.published()
    assert (-1 if outside is None else outside) == noted
    # Recovery begins behind what is noted, or further back if the note did not reach the disk.
    for epoch in itertools.chain(range(noted + 1, 6), range(6)):
        world.publisher.publish(epoch, receipts[epoch])
        world.now += 4
    world.publisher.flush()
    assert sorted(n for numbers in world.shown().values() for n in numbers) == list(range(6))


def test_a_crash_between_the_rename_and_the_clean_up_doubles_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    receipts = {epoch: world.stage(epoch, epoch) for epoch in range(2)}
    kept = {
        receipt.path: Path(receipt.path).read_bytes() for r in receipts.values() for receipt in r
    }
    for epoch in range(2):
        world.publisher.publish(epoch, receipts[epoch])
    world.publisher.flush()
    for path, content in kept.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(content)
    world.restart()
    for epoch in range(2):
        world.publisher.publish(epoch, receipts[epoch])
    world.publisher.flush()
    assert world.shown() == {"000000000000-to-000000000001": [0, 1]}


def test_rows_of_another_schema_begin_another_file(tmp_path: Path) -> None:
    world = World(tmp_path, "csv")
    world.publisher.publish(0, world.stage(0, 1))
    other = pa.schema({"n": pa.int64(), "m": pa.int64()})
    world.publisher.publish(1, world.stage(1, 2, schema=other))
    world.publisher.flush()
    assert world.shown() == {
        "000000000000-to-000000000000": [1],
        "000000000001-to-000000000001": [2],
    }


def test_a_damaged_part_is_named_and_nothing_is_shown(tmp_path: Path) -> None:
    world = World(tmp_path)
    receipts = [world.stage(epoch, epoch) for epoch in range(2)]
    Path(receipts[0][0].path).write_bytes(b'{"n":7}\n')
    for epoch in range(2):
        world.publisher.publish(epoch, receipts[epoch])
    with pytest.raises(CheckpointDamaged, match="/0/task"):
        world.publisher.flush()
    assert world.shown() == {}


def test_a_file_that_was_renamed_before_an_error_must_have_the_size_of_the_staged_one(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    (receipt,) = world.stage(0, 1)
    world.publisher.publish(0, [receipt])
    shown = world.out / "01234567-results-000000000000-to-000000000000.jsonl"
    whole = Path(receipt.path).read_bytes()
    Path(receipt.path).rename(shown)
    shown.write_bytes(whole[:-1])
    with pytest.raises(CheckpointDamaged, match=f"{shown.name} has {len(whole) - 1} bytes"):
        world.publisher.flush()
    shown.write_bytes(whole)
    world.publisher.flush()
    assert world.shown() == {"000000000000-to-000000000000": [1]}
