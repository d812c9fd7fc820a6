"""Watching a directory: finished files are taken once, in a log that survives crashes."""

from pathlib import Path

import pytest

from headrace.connectors.files.discovery import DiscoveryLog, SeenFile
from headrace.connectors.files.watcher import FileWatcher, Where
from headrace.errors import CheckpointDamaged


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


def watcher(inbox: Path, notes: Path) -> FileWatcher:
    return FileWatcher(Where(inbox, (".jsonl",)), DiscoveryLog(notes), poll_s=60.0)


def names(notes: Path) -> list[str]:
    log = DiscoveryLog(notes)
    log.refresh()
    return [Path(file.path).name for file in log.files]


def test_a_file_is_taken_when_two_looks_agree(inbox: Path, notes: Path) -> None:
    watching = watcher(inbox, notes)
    (inbox / "a.jsonl").write_text("1")
    watching.poll()
    assert watching.spans()["files"].end == 0
    (inbox / "a.jsonl").write_text("12")
    watching.poll()
    assert watching.spans()["files"].end == 0
    watching.poll()
    assert watching.spans()["files"].end == 1
    assert not watching.spans()["files"].finished


def test_a_file_is_taken_once_and_later_ones_come_behind(inbox: Path, notes: Path) -> None:
    watching = watcher(inbox, notes)
    for name in ("m.jsonl", "a.jsonl"):
        (inbox / name).write_text("1")
        watching.poll()
        watching.poll()
        watching.poll()
    assert names(notes) == ["m.jsonl", "a.jsonl"]


def test_a_restart_goes_on_with_what_the_log_has(inbox: Path, notes: Path) -> None:
    (inbox / "b.jsonl").write_text("1")
    first = watcher(inbox, notes)
    first.poll()
    first.poll()
    (inbox / "a.jsonl").write_text("1")
    second = watcher(inbox, notes)
    assert second.spans()["files"].end == 1
    second.poll()
    second.poll()
    assert names(notes) == ["b.jsonl", "a.jsonl"]


def test_a_directory_that_is_not_there_yet_has_no_files(inbox: Path, notes: Path) -> None:
    watching = watcher(inbox / "later", notes)
    watching.poll()
    (inbox / "later").mkdir()
    (inbox / "later" / "a.jsonl").write_text("1")
    watching.poll()
    watching.poll()
    assert watching.spans()["files"].end == 1


def test_the_thread_looks_by_itself_and_ends(inbox: Path, notes: Path) -> None:
    watching = watcher(inbox, notes)
    watching.start()
    watching.close()
    assert watching.spans()["files"].end == 0


def test_an_error_of_the_thread_shows_when_spans_are_asked_for(inbox: Path, notes: Path) -> None:
    (inbox / "a.jsonl").write_text("1")
    watching = watcher(inbox, notes)
    watching.poll()
    (notes / "files.log").mkdir()
    watching.start()
    watching.close()
    with pytest.raises(IsADirectoryError):
        watching.spans()


@pytest.mark.parametrize("kept", range(1, 200, 7))
def test_half_a_line_at_the_end_is_cut_off(kept: int, notes: Path) -> None:
    files = [SeenFile(f"/in/{n}.jsonl", n, n) for n in range(4)]
    log = DiscoveryLog(notes)
    log.append(files[:2])
    log.append(files[2:])
    path = notes / "files.log"
    content = path.read_bytes()
    path.write_bytes(content[:kept])
    again = DiscoveryLog(notes)
    again.recover()
    whole = max(content[:kept].count(b"\n") - 1, 0)
    assert list(again.files) == files[:whole]
    again.append(files[whole:])
    fresh = DiscoveryLog(notes)
    fresh.recover()
    assert list(fresh.files) == files


def test_a_flipped_byte_in_the_log_is_damage(notes: Path) -> None:
    log = DiscoveryLog(notes)
    log.append([SeenFile("/in/a.jsonl", 10, 20)])
    path = notes / "files.log"
    path.write_bytes(path.read_bytes().replace(b"a.jsonl", b"b.jsonl"))
    with pytest.raises(CheckpointDamaged, match=r"line 1 of .*files\.log"):
        DiscoveryLog(notes).refresh()
