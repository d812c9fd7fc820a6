"""Every kind of window in one job that is killed again and again: its results are those of a quiet run."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headrace.testing import run_local
from tests.crash import windows_job
from tests.crash.killing import run
from tests.zoo import NAMES

pytestmark = pytest.mark.crash

JOB = Path(windows_job.__file__)
FAULTS = ("K3:2:group", "K6:5:jvm", "K9:8:driver")


def found(root: Path, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a folder, however they lie in files."""
    tables = [pq.read_table(path) for path in sorted((root / name).glob("*.parquet"))]
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


def test_no_kind_of_window_loses_or_doubles_anything(tmp_path: Path) -> None:
    for fault in FAULTS:
        killed = run(tmp_path / "killed", script=JOB, HEADRACE_FAULT=fault)
        assert killed.code != 0, f"{fault} was not reached: {killed.said}"
    resumed = run(tmp_path / "killed", script=JOB)
    assert resumed.code == 0, resumed.said
    run_local(windows_job.build(tmp_path / "quiet"), shards=3)
    for name in NAMES:
        if name == "by-clock":
            continue
        there, wanted = found(tmp_path / "killed", name), found(tmp_path / "quiet", name)
        assert wanted, f"{name} says nothing, so it shows nothing"
        assert (there - wanted, wanted - there) == (Counter(), Counter()), name
    by_clock = found(tmp_path / "killed", "by-clock")
    counted = sum(row[-2] * times for row, times in by_clock.items())
    assert counted == windows_job.ROWS
