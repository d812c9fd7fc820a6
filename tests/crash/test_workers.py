"""Workers and replicas may go at any time: a task is run again, a replica is built again."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.checker import CLEAN, check
from tests.crash.killing import finish, jvm_of, launch, run, wait_until

pytestmark = pytest.mark.crash


def workers(job: subprocess.Popen[str]) -> list[int]:
    """The Python workers of a job that run tasks now: forked from Spark's daemon."""
    listed = subprocess.run(
        ["ps", "-s", str(job.pid), "-o", "pid=,ppid=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    daemons = {
        pid for pid, _, args in rows if "pyspark.daemon" in args and "pyspark.worker" in args
    }
    return [
        int(pid) for pid, parent, args in rows if parent in daemons and "pyspark.daemon" in args
    ]


def kill(pid: int) -> bool:
    """Whether it was still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def planner_of(job: subprocess.Popen[str]) -> list[int]:
    """The process in which a job's epochs are planned; jobs are sessions of their own."""
    listed = subprocess.run(
        ["pgrep", "-s", str(job.pid), "-f", "python_streaming_source_runner"],
        capture_output=True,
        text=True,
        check=False,
    )
    return [int(pid) for pid in listed.stdout.split()]


def test_workers_planner_and_jvm_are_replaced_without_a_new_process(tmp_path: Path) -> None:
    process = launch(tmp_path, CRASH_RESTARTS="3")
    commits = tmp_path / "state/spark/commits"
    for epoch, victims in (
        (1, lambda: workers(process)[:1]),  # its task is run again
        (3, lambda: workers(process)[:1]),
        (5, lambda: planner_of(process)),  # the job is restarted
        (8, lambda: [pid for pid in [jvm_of(process)] if pid]),
    ):
        assert wait_until((commits / str(epoch)).exists)
        assert wait_until(lambda: sum(map(kill, victims())) > 0, 20)  # noqa: B023 - called here
    ended = finish(process)
    assert ended.code == 0, ended.said
    assert ended.said.count("restarting") == 2, ended.said
    assert "Traceback" not in ended.said
    assert check(tmp_path) == CLEAN


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real memory disk of 32 KB; only root can mount one."""
    if os.geteuid() != 0:
        pytest.skip("mounting a memory disk needs root")
    path = tmp_path / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(path)], check=False
    )
    if mounted.returncode:
        pytest.skip("this machine does not let us mount a memory disk")
    yield path
    # Workers of a job that has ended may have it open for a moment longer.
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_full_memory_disk_moves_replicas_to_the_other_disk(
    tmp_path: Path, small_disk: Path
) -> None:
    ended = run(tmp_path / "job", HEADRACE_REPLICAS=str(small_disk))
    assert ended.code == 0, ended.said
    assert check(tmp_path / "job") == CLEAN


def test_broken_replicas_are_built_again(tmp_path: Path) -> None:
    places = tmp_path / "replicas"
    places.mkdir()
    killed = run(tmp_path / "job", HEADRACE_REPLICAS=str(places), HEADRACE_FAULT="K8:4:group")
    assert killed.code != 0
    buffers = [path for path in places.rglob("m-*") if path.is_file()]
    assert buffers
    for number, path in enumerate(buffers):
        if number % 2:
            path.write_bytes(os.urandom(path.stat().st_size))
        else:
            path.unlink()
    for path in places.rglob("header"):
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    ended = run(tmp_path / "job", HEADRACE_REPLICAS=str(places))
    assert ended.code == 0, ended.said
    assert check(tmp_path / "job") == CLEAN
    shutil.rmtree(places)
