"""Every kind of window, and every kind of join, in a job that is killed again and again: its results are those of a quiet run.

The suite kills each once; `scripts/long kills` at every point of the protocol, by every way to die.
"""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from headrace.testing import run_local
from tests import join_zoo, zoo
from tests.crash import zoo_job
from tests.crash.killing import POINTS, VICTIMS, WHOLE_MATRIX, run

pytestmark = pytest.mark.crash

JOB = Path(zoo_job.__file__)
NAMES = {"windows": [name for name in zoo.NAMES if name != "by-clock"], "joins": join_zoo.NAMES}
FAULTS = {"windows": ["K4:5:jvm"], "joins": ["K5:5:group"]}
if WHOLE_MATRIX:
    matrix = [
        f"{point}:{1 + number}:{victim}"
        for number, (point, victim) in enumerate(product(POINTS, VICTIMS))
    ]
    FAULTS = dict.fromkeys(FAULTS, matrix)


def found(root: Path, name: str) -> Counter[tuple[Any, ...]]:
    """The rows of a folder, however they lie in files."""
    tables = [pq.read_table(path) for path in sorted((root / name).glob("*.parquet"))]
    return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())


@pytest.mark.parametrize("kinds", zoo_job.ZOOS)
def test_no_kind_loses_or_doubles_anything(kinds: str, tmp_path: Path) -> None:
    for fault in FAULTS[kinds]:
        killed = run(tmp_path / "killed", script=JOB, HEADRACE_ZOO=kinds, HEADRACE_FAULT=fault)
        assert killed.code != 0, f"{fault} was not reached: {killed.said}"
    resumed = run(tmp_path / "killed", script=JOB, HEADRACE_ZOO=kinds)
    assert resumed.code == 0, resumed.said
    run_local(zoo_job.build(kinds, tmp_path / "quiet"), shards=3)
    for name in NAMES[kinds]:
        there, wanted = found(tmp_path / "killed", name), found(tmp_path / "quiet", name)
        assert wanted, f"{name} says nothing, so it shows nothing"
        assert (there - wanted, wanted - there) == (Counter(), Counter()), name
    if kinds == "windows":
        by_clock = found(tmp_path / "killed", "by-clock")
        assert sum(row[-2] * times for row, times in by_clock.items()) == zoo_job.ROWS
