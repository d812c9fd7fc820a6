"""Damage between two runs: it is refused by the name of the file, or it does not matter."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash import pipeline
from tests.crash.checker import CLEAN, check
from tests.crash.killing import finish, jvm_of, launch, run, wait_until

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was stopped cleanly in the middle."""
    root = tmp_path_factory.mktemp("stopped")
    process = launch(root)
    assert wait_until((root / "state/spark/commits/2").exists)
    process.send_signal(signal.SIGTERM)
    ended = finish(process)
    assert ended.code == 0, ended.said
    return root


@pytest.fixture(scope="module")
def unpublished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was killed when epoch 4 was durable and nothing of it was published."""
    root = tmp_path_factory.mktemp("unpublished")
    killed = run(root, HEADRACE_FAULT="K8:4:group")
    assert killed.code != 0, killed.said
    return root


def newest(directory: Path, pattern: str = "*") -> Path:
    """The file of the highest epoch."""
    found = [path for path in directory.glob(pattern) if path.is_file() and path.name[0] != "."]
    return max(found, key=lambda path: (len(path.name), str(path)))


FILES = {
    "offset": lambda root: newest(root / "state/spark/offsets"),
    "commit": lambda root: newest(root / "state/spark/commits"),
    "manifest": lambda root: newest(root / "state/manifests"),
    "job record": lambda root: root / "state/job.json",
}


@contextmanager
def flipped(path: Path) -> Iterator[None]:
    """One bit of the file is wrong for a while."""
    sound = path.read_bytes()
    middle = len(sound) // 2
    path.write_bytes(sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :])
    try:
        yield
    finally:
        path.write_bytes(sound)


@pytest.mark.parametrize("kind", FILES)
def test_flipped_byte_is_refused_by_the_name_of_the_file(kind: str, stopped: Path) -> None:
    path = FILES[kind](stopped)
    with flipped(path):
        ended = run(stopped)
    assert ended.code == 1, ended.said
    assert "CheckpointDamaged" in ended.said
    assert path.name in ended.said


def test_stopped_job_goes_on_when_the_damage_is_mended(stopped: Path) -> None:
    # K2: a temporary file of Spark's that a kill left behind unrenamed.
    (stopped / "state/spark/offsets/.99.0b8c.tmp").write_bytes(b"v1\n{")
    ended = run(stopped)
    assert ended.code == 0, ended.said
    assert check(stopped) == CLEAN


def test_flipped_byte_in_staged_rows_is_refused_and_nothing_is_shown(unpublished: Path) -> None:
    staged = newest(unpublished / "raw/.staging", "*/*/4/*")
    shown = set((unpublished / "raw").glob("*.parquet"))
    with flipped(staged):
        ended = run(unpublished)
        assert ended.code == 1, ended.said
        assert "CheckpointDamaged" in ended.said
        assert staged.name in ended.said
        assert set((unpublished / "raw").glob("*.parquet")) == shown
    ended = run(unpublished)
    assert ended.code == 0, ended.said
    assert check(unpublished) == CLEAN


def test_deleted_checkpoint_gives_all_rows_again(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert first.code == 0, first.said
    # What a user sees is ours alone: no line of Spark's, of Java's or of a worker's.
    assert [line.split(":")[0] for line in first.said.splitlines()] == ["headrace"]
    shutil.rmtree(tmp_path / "state")
    assert run(tmp_path).code == 0
    verdict = check(tmp_path)
    assert verdict.lost == 0
    assert verdict.doubled == pipeline.ROWS


def test_suspended_holder_keeps_its_checkpoint(tmp_path: Path) -> None:
    holder = launch(tmp_path)
    assert wait_until((tmp_path / "state/spark/commits/1").exists)
    jvm = jvm_of(holder)
    assert jvm is not None
    os.kill(jvm, signal.SIGSTOP)
    try:
        refused = run(tmp_path)
        assert refused.code == 1
        assert "CheckpointInUse" in refused.said
    finally:
        os.kill(jvm, signal.SIGCONT)
    ended = finish(holder)
    assert ended.code == 0, ended.said
    assert check(tmp_path) == CLEAN
