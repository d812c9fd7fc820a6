from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace._commit.checkpoint import Checkpoint
from headrace._commit.files import crc_of
from headrace._commit.manifest import Manifest, write_manifest
from headrace._commit.recovery import opened_publishers, recover
from headrace.endpoints import Publisher, Receipt
from headrace.errors import CheckpointDamaged, EngineError


class Notebook(Publisher):
    def __init__(self) -> None:
        self.shown: list[tuple[int, tuple[str, ...]]] = []
        self.kept: list[frozenset[int]] = []
        self.closed = 0

    def close(self) -> None:
        self.closed += 1

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        self.shown.append((epoch, tuple(receipt.path for receipt in receipts)))

    def discard(self, keep: frozenset[int]) -> None:
        self.kept.append(keep)


def opened(root: Path) -> Checkpoint:
    return Checkpoint.open(
        root, job="j", signature={}, digest="d", shards=None, default_shards=1, versions={}
    )


def run_epoch(checkpoint: Checkpoint, epoch: int, *, commit: bool = True) -> None:
    layout = checkpoint.layout
    for directory in (layout.offsets, layout.commits):
        directory.mkdir(parents=True, exist_ok=True)
    layout.offset(epoch).write_text(f"v1\noffset {epoch}")
    write_manifest(
        layout,
        Manifest(
            epoch=epoch,
            fence=checkpoint.fence,
            incarnation=checkpoint.incarnation,
            receipts=(Receipt("out", f"part-{epoch}", 1, 1, 1),),
            offsets_crc=crc_of(layout.offset(epoch)),
            commits_crc=crc_of(layout.commit(epoch - 1)),
        ),
    )
    if commit:
        layout.commit(epoch).write_text(f"v1\ncommit {epoch}")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    """Epochs 0 to 2 durable and unpublished, epoch 3 recorded only."""
    checkpoint = opened(tmp_path / "c")
    for epoch in range(3):
        run_epoch(checkpoint, epoch)
    run_epoch(checkpoint, 3, commit=False)
    return checkpoint


def test_what_is_durable_is_published_in_order_and_the_rest_goes(checkpoint: Checkpoint) -> None:
    sink = Notebook()
    recovered = recover(checkpoint, {"out": sink})
    assert sink.shown == [(0, ("part-0",)), (1, ("part-1",)), (2, ("part-2",))]
    assert sink.kept == [frozenset({0, 1, 2})]
    assert sorted(checkpoint.manifests()) == [0, 1, 2]
    assert (recovered.durable, recovered.published, recovered.finished) == (2, (0, 1, 2), False)


def test_a_second_recovery_publishes_nothing(checkpoint: Checkpoint) -> None:
    recover(checkpoint, {"out": Notebook()})
    again = Notebook()
    recovered = recover(opened(checkpoint.layout.root), {"out": again})
    assert again.shown == []
    assert recovered.published == ()
    assert recovered.manifest is not None
    assert recovered.manifest.epoch == 2


def test_a_fresh_checkpoint_has_nothing_to_recover(tmp_path: Path) -> None:
    assert recover(opened(tmp_path / "c"), {"out": Notebook()}).durable == -1


@pytest.mark.parametrize("log", ["offsets", "commits"])
@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_flipped_byte_in_sparks_logs_is_refused_by_name(
    checkpoint: Checkpoint, log: str, epoch: int
) -> None:
    recover(checkpoint, {"out": Notebook()})
    path = checkpoint.layout.spark / log / str(epoch)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointDamaged, match=f"{log}/{epoch} "):
        recover(checkpoint, {"out": Notebook()})


def test_a_flipped_byte_in_an_offset_that_will_run_again_is_refused(
    checkpoint: Checkpoint,
) -> None:
    checkpoint.layout.offset(3).write_text("v1\noffset 4")
    with pytest.raises(CheckpointDamaged, match="offsets/3 "):
        recover(checkpoint, {"out": Notebook()})


def test_a_damaged_manifest_is_refused_by_name(checkpoint: Checkpoint) -> None:
    path = checkpoint.layout.manifest(1, checkpoint.fence)
    path.write_bytes(path.read_bytes().replace(b"part-1", b"part-9"))
    with pytest.raises(CheckpointDamaged, match=path.name):
        recover(checkpoint, {"out": Notebook()})


def test_a_manifest_of_another_incarnation_is_refused(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path / "c")
    run_epoch(checkpoint, 0)
    stranger = Manifest(epoch=0, fence=checkpoint.fence, incarnation="another")
    write_manifest(checkpoint.layout, stranger)
    with pytest.raises(CheckpointDamaged, match="another checkpoint"):
        recover(checkpoint, {"out": Notebook()})


def test_of_several_manifests_of_an_epoch_that_of_the_latest_run_is_published(
    checkpoint: Checkpoint,
) -> None:
    recover(checkpoint, {"out": Notebook()})
    later = opened(checkpoint.layout.root)
    run_epoch(later, 3)
    # The earlier run was only asleep: it records the epoch that it had begun.
    stale = Manifest(
        epoch=3,
        fence=checkpoint.fence,
        incarnation=checkpoint.incarnation,
        receipts=(Receipt("out", "stale", 1, 1, 1),),
    )
    write_manifest(checkpoint.layout, stale)
    sink = Notebook()
    recovered = recover(opened(checkpoint.layout.root), {"out": sink})
    assert sink.shown == [(3, ("part-3",))]
    assert recovered.manifest is not None
    assert recovered.manifest.fence == later.fence


def test_a_run_without_the_lease_publishes_nothing(checkpoint: Checkpoint) -> None:
    sink = Notebook()
    with pytest.raises(EngineError, match=r"the lease of .* was lost"):
        recover(checkpoint, {"out": sink}, held=lambda: False)
    assert sink.shown == []


def test_publishers_of_a_start_that_fails_are_closed() -> None:
    good, gone = Notebook(), EngineError("the second sink is away")

    def away() -> Publisher:
        raise gone

    with (
        pytest.raises(EngineError, match="away"),
        opened_publishers({"a": lambda: good, "b": away}),
    ):
        pass
    assert good.closed == 1
    with pytest.raises(EngineError, match="away"), opened_publishers({"a": lambda: good}):
        raise gone
    assert good.closed == 2
    with opened_publishers({"a": lambda: good}) as publishers:
        assert publishers == {"a": good}
    assert good.closed == 2, "the committer closes it"
