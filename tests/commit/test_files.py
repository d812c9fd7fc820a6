from pathlib import Path

import pytest

from headrace._commit.files import (
    crc_of,
    make_directory,
    read_record,
    remove_leftovers,
    write_durably,
    write_record,
)
from headrace.errors import CheckpointDamaged

BODY = {"name": "bids", "shards": 3, "nested": {"a": [1, 2.5, None, True]}, "text": "é\ud800"}


def test_a_record_reads_as_it_was_written(tmp_path: Path) -> None:
    write_record(tmp_path / "r.json", BODY)
    assert read_record(tmp_path / "r.json") == BODY


def test_every_flipped_byte_of_a_record_is_noticed_by_name(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    write_record(path, {"shards": 3, "job": "bids"})
    content = path.read_bytes()
    for place in range(len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(CheckpointDamaged, match=r"r\.json"):
            read_record(path)


@pytest.mark.parametrize("length", [0, 1, 20])
def test_a_truncated_record_is_noticed_by_name(tmp_path: Path, length: int) -> None:
    path = tmp_path / "r.json"
    write_record(path, {"shards": 3, "job": "bids"})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CheckpointDamaged, match=r"r\.json"):
        read_record(path)


def test_a_missing_record_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointDamaged, match=r"r\.json is missing"):
        read_record(tmp_path / "r.json")


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_durably(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_cut_writes_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".job.json.123.tmp").touch()
    (tmp_path / "job.json").touch()
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["job.json"]


def test_directories_are_for_the_owner_alone(tmp_path: Path) -> None:
    make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700


def test_the_checksum_of_an_absent_file_is_none(tmp_path: Path) -> None:
    assert crc_of(tmp_path / "absent") is None
