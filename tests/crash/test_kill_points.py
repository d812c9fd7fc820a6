"""kill -9 at every point of the commit protocol, of every victim, each in its own job; sinks are files. Only in `scripts/long kills`.

The suite kills jobs from log to log at a sample of these (`test_log`), from the first to the final epoch.
"""

from pathlib import Path

import pytest

from tests.crash import pipeline
from tests.crash.checker import CLEAN, check
from tests.crash.killing import POINTS, VICTIMS, WHOLE_MATRIX, run

pytestmark = pytest.mark.crash

FINAL = pipeline.ROWS // pipeline.ROWS_PER_EPOCH
EPOCH = 4


def killed_at(faults: list[str], root: Path) -> None:
    """One run for each fault, and one to the end."""
    for fault in faults:
        killed = run(root, HEADRACE_FAULT=fault)
        assert killed.code != 0, f"{fault} was not reached: {killed.said}"
    resumed = run(root)
    assert resumed.code == 0, resumed.said
    assert check(root) == CLEAN


if WHOLE_MATRIX:

    def test_kills_in_the_first_and_in_the_final_epoch_are_survived(tmp_path: Path) -> None:
        killed_at(["K6:0:group", f"K7:{FINAL}:jvm"], tmp_path)

    @pytest.mark.parametrize("victim", VICTIMS)
    @pytest.mark.parametrize("point", POINTS)
    def test_nothing_is_lost_or_doubled_by_a_kill_at(
        point: str, victim: str, tmp_path: Path
    ) -> None:
        killed_at([f"{point}:{EPOCH}:{victim}"], tmp_path)
