from pathlib import Path
from typing import Any

import pytest

from headrace._commit import checkpoint as module
from headrace._commit.checkpoint import Checkpoint, durable_epoch, peek, prepare
from headrace._commit.manifest import Manifest, write_manifest
from headrace.errors import CheckpointDamaged, CheckpointError, CheckpointMismatch


def opened(root: Path, **changes: Any) -> Checkpoint:
    wanted: dict[str, Any] = {
        "job": "bids",
        "signature": {"keys": ["auction"]},
        "digest": "d1",
        "shards": None,
        "default_shards": 2,
        "versions": {"headrace": "0.1.0"},
    }
    return Checkpoint.open(root, **{**wanted, **changes})


def test_every_start_has_a_higher_fence_and_the_same_incarnation(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "c"), opened(tmp_path / "c")
    assert (first.fence, second.fence) == (1, 2)
    assert first.incarnation == second.incarnation


def test_a_deleted_checkpoint_begins_another_incarnation(tmp_path: Path) -> None:
    assert opened(tmp_path / "a").incarnation != opened(tmp_path / "b").incarnation


def test_a_lost_fence_file_does_not_repeat_a_fence(tmp_path: Path) -> None:
    first = opened(tmp_path / "c")
    write_manifest(first.layout, Manifest(epoch=0, fence=7, incarnation=first.incarnation))
    first.layout.fence.unlink()
    assert opened(tmp_path / "c").fence == 8


def test_shards_come_from_the_first_start(tmp_path: Path) -> None:
    assert opened(tmp_path / "c").shards == 2
    assert opened(tmp_path / "c", default_shards=8).shards == 2
    assert opened(tmp_path / "c", shards=2).shards == 2
    with pytest.raises(CheckpointMismatch, match="has 2 shards and cannot be run with 3"):
        opened(tmp_path / "c", shards=3)


def test_another_job_is_refused_by_name(tmp_path: Path) -> None:
    opened(tmp_path / "c")
    with pytest.raises(CheckpointMismatch, match="'bids', not to 'asks'"):
        opened(tmp_path / "c", job="asks")


def test_a_changed_graph_is_refused_with_the_changes(tmp_path: Path) -> None:
    opened(tmp_path / "c")
    with pytest.raises(CheckpointMismatch, match=r"key of 'w' was auction.*new checkpoint"):
        opened(
            tmp_path / "c",
            digest="d2",
            signature={"keys": ["bidder"]},
            describe=lambda old, _: [f"the key of 'w' was {old['keys'][0]}"],
        )


def test_a_refused_start_takes_no_fence(tmp_path: Path) -> None:
    opened(tmp_path / "c")
    with pytest.raises(CheckpointMismatch):
        opened(tmp_path / "c", digest="d2")
    assert opened(tmp_path / "c").fence == 2


def test_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(tmp_path / "c")
    monkeypatch.setattr(module, "FORMAT", 2)
    with pytest.raises(CheckpointMismatch, match="format 1"):
        opened(tmp_path / "c")


def test_a_directory_of_ours_is_for_the_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir(mode=0o755)
    opened(tmp_path / "c")
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o700


def test_a_world_writable_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c").chmod(0o777)
    with pytest.raises(CheckpointError, match="chmod 700"):
        prepare(tmp_path / "c")


def test_a_parent_where_anybody_may_rename_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(CheckpointError, match="every user"):
        prepare(tmp_path / "open" / "c")
    (tmp_path / "open").chmod(0o1777)
    prepare(tmp_path / "open" / "c")


def test_a_directory_that_cannot_be_written_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(CheckpointError, match="Read-only file system"):
        prepare(tmp_path / "c")


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c").touch()
    with pytest.raises(CheckpointError):
        prepare(tmp_path / "c")


@pytest.mark.parametrize("root", ["s3://bucket/c", "hdfs://host/c", "file:///tmp/c"])
def test_other_file_systems_are_refused_with_a_sentence(root: str) -> None:
    with pytest.raises(CheckpointError, match="not a local path"):
        prepare(root)


def test_somebody_elses_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CheckpointError, match=r"thesis\.tex"):
        prepare(tmp_path)


def test_a_missing_job_record_is_damage_not_a_new_checkpoint(tmp_path: Path) -> None:
    checkpoint = opened(tmp_path / "c")
    write_manifest(checkpoint.layout, Manifest(epoch=0, fence=1, incarnation="x"))
    checkpoint.layout.job.unlink()
    with pytest.raises(CheckpointDamaged, match=r"job\.json is missing"):
        opened(tmp_path / "c")


def test_peeking_changes_nothing(tmp_path: Path) -> None:
    assert peek(tmp_path / "c") is None
    assert not (tmp_path / "c").exists()
    opened(tmp_path / "c")
    record = peek(tmp_path / "c")
    assert record is not None
    assert (record.job, record.shards, record.digest) == ("bids", 2, "d1")


def test_durable_is_the_highest_commit_and_no_temporary_file(tmp_path: Path) -> None:
    layout = opened(tmp_path / "c").layout
    assert durable_epoch(layout) == -1
    layout.commits.mkdir(parents=True)
    for name in ("8", "9", "10", ".11.crc", ".11.abc.tmp", "metadata"):
        (layout.commits / name).touch()
    assert durable_epoch(layout) == 10
