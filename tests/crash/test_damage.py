"""Damage between two runs: it is refused by the name of the file, or it does not matter."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.checker import CLEAN, check
from tests.crash.killing import finish, jvm_of, launch, run, wait_until

pytestmark = pytest.mark.crash


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
    "offset": lambda root: root / "state/spark/offsets" / newest(root / "state/spark/commits").name,
    # The newest one is checked by what was noted of its publication, which this job has not come to.
    "commit": lambda root: root / "state/spark/commits/3",
    "manifest": lambda root: newest(root / "state/manifests"),
    "job record": lambda root: root / "state/job.json",
    "staged rows": lambda root: newest(root / "raw/.staging", "*/*/4/*"),
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
def test_flipped_byte_is_refused_by_the_name_of_the_file_and_nothing_is_published(
    kind: str, unpublished: Path
) -> None:
    path = FILES[kind](unpublished)
    published = set((unpublished / "raw").glob("*.parquet"))
    with flipped(path):
        ended = run(unpublished)
    assert ended.code == 1, ended.said
    assert "CheckpointDamaged" in ended.said
    assert path.name in ended.said
    if kind == "staged rows":
        assert set((unpublished / "raw").glob("*.parquet")) == published


def test_suspended_holder_keeps_its_checkpoint_and_stops_cleanly(unpublished: Path) -> None:
    # K2: a temporary file of Spark's that a kill left unrenamed.
    (unpublished / "state/spark/offsets/.99.0b8c.tmp").write_bytes(b"v1\n{")
    holder = launch(unpublished)
    assert wait_until((unpublished / "state/spark/commits/6").exists)
    jvm = jvm_of(holder)
    assert jvm is not None
    os.kill(jvm, signal.SIGSTOP)
    try:
        refused = run(unpublished)
        assert refused.code == 1
        assert "CheckpointInUse" in refused.said
    finally:
        os.kill(jvm, signal.SIGCONT)
    holder.send_signal(signal.SIGTERM)
    stopped = finish(holder)
    assert stopped.code == 0, stopped.said


def test_stopped_job_continues(unpublished: Path) -> None:
    ended = run(unpublished)
    assert ended.code == 0, ended.said
    # What a user sees is ours alone: no line of Spark's, of Java's or of a worker's.
    assert {line.split(":")[0] for line in ended.said.splitlines()} == {"headrace"}
    assert check(unpublished) == CLEAN
