from pathlib import Path

import pytest

from headrace._commit.paths import Layout, manifest_name, parse_manifest_name, safe_name


def test_manifest_names_sort_by_epoch_then_fence() -> None:
    order = [(0, 9), (1, 2), (1, 10), (12, 1), (100, 1)]
    names = [manifest_name(*each) for each in order]
    assert sorted(names) == names
    assert [parse_manifest_name(name) for name in names] == order


@pytest.mark.parametrize("name", ["x.json", "12-3.json", ".000000000001-000001.json.tmp", "a-b"])
def test_other_files_are_not_manifests(name: str) -> None:
    assert parse_manifest_name(name) is None


@pytest.mark.parametrize(
    "uid", ["..", ".", "../../etc", "a/b", "a\0b", ".hidden", "é" * 200, "%2E"]
)
def test_no_uid_leaves_its_directory(uid: str) -> None:
    layout = Layout(Path("/checkpoint"))
    path = layout.spool(uid)
    assert path.parent == Path("/checkpoint/spool")
    assert not path.name.startswith(".")
    assert len(path.name) <= 255


def test_different_uids_have_different_names() -> None:
    uids = ["a", "A", "a/b", "a%2Fb", ".", "%2E", "x" * 300, "x" * 301]
    assert len({safe_name(uid) for uid in uids}) == len(uids)
