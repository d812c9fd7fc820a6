"""Damage between two runs: it is refused by the name of the file, or it does not matter."""

import shutil
from pathlib import Path

import pytest

from tests.crash.checker import CLEAN, check
from tests.crash.killing import launch, finish, run, wait_until

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job that was killed when epoch 4 was durable and nothing of it was published."""
    root = tmp_path_factory.mktemp("damage")
    killed = run(root, HEADRACE_FAULT="K8:4:group")
    assert killed.code != 0, killed.said
    return root


def newest(directory: Path, pattern: str = "*") -> Path:
    """The file of the highest epoch."""
    found = [
        path
        for path in directory.glob(pattern)
        if path.is_file() and not path.name.startswith(".")
    ]
    return max(found, key=lambda path: (len(path.name), str(path)))


FILES = {
    "offset": lambda root: newest(root / "state/spark/offsets"),
    "commit": lambda root: newest(root / "state/spark/commits"),
    "manifest": lambda root: newest(root / "state/manifests"),
    "job record": lambda root: root / "state/job.json",
    "staged file": lambda root: newest(root / "raw/.staging", "**/*"),
}


@pytest.mark.parametrize("kind", FILES)
def test_flipped_byte_is_refused_by_the_name_of_the_file(
    kind: str, stopped: Path, tmp_path: Path
) -> None:
    root = tmp_path / "copy"
    shutil.copytree(stopped, root)
    path = FILES[kind](root)
    sound = path.read_bytes()
    middle = len(sound) // 2
    path.write_bytes(sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :])
    ended = run(root)
    assert ended.code == 1, ended.said
    assert "CheckpointDamaged" in ended.said
    assert path.name in ended.said
    # Nothing was done meanwhile: with the byte back in place the job goes on and ends well.
    path.write_bytes(sound)


def test_mended_checkpoint_goes_on(stopped: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(stopped, root)
    path = newest(root / "state/manifests")
    sound = path.read_bytes()
    path.write_bytes(sound[:-20])
    assert run(root).code == 1
    path.write_bytes(sound)
    # K2: a temporary file of Spark's that the kill left behind unrenamed.
    (root / "state/spark/offsets/.5.0b8c.tmp").write_bytes(b"v1\n{")
    ended = run(root)
    assert ended.code == 0, ended.said
    assert check(root) == CLEAN


def test_deleted_checkpoint_gives_all_rows_again(tmp_path: Path) -> None:
    assert run(tmp_path).code == 0
    shutil.rmtree(tmp_path / "state")
    assert run(tmp_path).code == 0
    verdict = check(tmp_path)
    from tests.crash import pipeline

    assert verdict.lost == 0
    assert verdict.doubled == pipeline.ROWS


def test_suspended_holder_keeps_its_checkpoint(tmp_path: Path) -> None:
    import os
    import signal

    from tests.crash.killing import jvm_of

    holder = launch(tmp_path)
    assert wait_until(lambda: (tmp_path / "state/spark/commits/1").exists())
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
