from pathlib import Path

import pytest

from headrace._commit.manifest import Manifest, list_manifests, read_manifest, write_manifest
from headrace._commit.paths import Layout
from headrace.endpoints import Receipt
from headrace.errors import CheckpointDamaged


def manifest(epoch: int = 3, fence: int = 1) -> Manifest:
    return Manifest(
        epoch=epoch,
        fence=fence,
        incarnation="ab",
        facts={"limit": 5},
        receipts=(
            Receipt("out", "p", 3, 100, 7, {"partition": 1}),
            Receipt("late", "q", 1, 10, 8),
        ),
        counts={"map": {"in": 3, "out": 3}},
        stamps={"window": {"0": "x", "1": "y"}},
        offsets_crc=1,
        commits_crc=None,
        finished=True,
        versions={"headrace": "0.1.0"},
    )


def test_a_manifest_reads_as_it_was_written(tmp_path: Path) -> None:
    write_manifest(Layout(tmp_path), manifest())
    assert read_manifest(Layout(tmp_path), 3) == manifest()


def test_of_several_fences_the_highest_is_true(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for fence in (2, 10, 9):
        write_manifest(layout, manifest(fence=fence))
    found = read_manifest(layout, 3)
    assert found is not None
    assert found.fence == 10
    assert list_manifests(layout) == {3: (2, 9, 10)}


def test_the_manifest_of_the_present_run_is_found_without_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path)
    for fence in (2, 9):
        write_manifest(layout, manifest(fence=fence))
    before = read_manifest(layout, 3, fence=10)
    assert before is not None
    assert before.fence == 9
    write_manifest(layout, manifest(fence=10))
    monkeypatch.setattr(Path, "iterdir", None)
    assert read_manifest(layout, 3, fence=10) == manifest(fence=10)


def test_an_epoch_without_a_manifest_has_none(tmp_path: Path) -> None:
    write_manifest(Layout(tmp_path), manifest())
    assert read_manifest(Layout(tmp_path), 4) is None


def test_a_manifest_under_another_name_is_refused(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    write_manifest(layout, manifest())
    layout.manifest(3, 1).rename(layout.manifest(4, 1))
    with pytest.raises(CheckpointDamaged, match="epoch 3"):
        read_manifest(layout, 4)


def test_receipts_are_told_apart_by_sink() -> None:
    assert [receipt.path for receipt in manifest().receipts_of("late")] == ["q"]
