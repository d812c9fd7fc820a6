import subprocess
import sys
from pathlib import Path

import pytest

from headrace._commit.lease import FileLease
from headrace.errors import CheckpointInUse

TRY = """
import sys
from pathlib import Path
from headrace._commit.lease import FileLease
from headrace.errors import CheckpointInUse
try:
    FileLease().acquire(Path(sys.argv[1]))
except CheckpointInUse as error:
    print(error)
else:
    print("taken")
"""


def from_another_process(path: Path) -> str:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", TRY, str(path)], capture_output=True, text=True, check=True, cwd=root
    )
    return done.stdout


def test_another_process_is_refused_while_the_lease_is_held(tmp_path: Path) -> None:
    lease = FileLease()
    lease.acquire(tmp_path / "lease")
    assert "in use by another process" in from_another_process(tmp_path / "lease")
    assert lease.held()
    lease.release()
    assert from_another_process(tmp_path / "lease").strip() == "taken"


def test_a_second_run_of_this_process_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    lease, second = FileLease(), FileLease()
    lease.acquire(tmp_path / "lease")
    with pytest.raises(CheckpointInUse, match="this process"):
        second.acquire(tmp_path / "lease")
    second.release()
    assert "in use" in from_another_process(tmp_path / "lease")
    lease.release()


def test_a_released_lease_can_be_taken_again(tmp_path: Path) -> None:
    lease = FileLease()
    lease.acquire(tmp_path / "lease")
    lease.release()
    lease.release()
    assert not lease.held()
    lease.acquire(tmp_path / "lease")
    assert lease.held()
    lease.release()


def test_a_lease_whose_file_was_replaced_is_lost(tmp_path: Path) -> None:
    lease = FileLease()
    lease.acquire(tmp_path / "lease")
    (tmp_path / "other").touch()
    (tmp_path / "other").replace(tmp_path / "lease")
    assert not lease.held()
    (tmp_path / "lease").unlink()
    assert not lease.held()
    lease.release()
