"""kill -9 at every point of the commit protocol, restart, and count.

A run of the suite kills one job at each point, one epoch after the other, with victims in turn.
`HEADRACE_KILL_MATRIX=all` also takes every point with every victim, each in a job of its own.
"""

import os
from pathlib import Path

import pytest

from tests.crash import pipeline
from tests.crash.checker import CLEAN, check
from tests.crash.killing import run

pytestmark = pytest.mark.crash

#: K2, a temporary file of Spark's that was not renamed, is made by hand in test_damage.
POINTS = ("K1", "K3", "K4", "K5", "K6", "K7", "K8", "K9", "K10", "K11")
VICTIMS = ("group", "driver", "jvm")
EPOCH = 4


def test_nothing_is_lost_or_doubled_by_a_kill_at_every_point_in_turn(tmp_path: Path) -> None:
    for number, point in enumerate(POINTS):
        victim = VICTIMS[number % len(VICTIMS)]
        killed = run(tmp_path, HEADRACE_FAULT=f"{point}:{number + 1}:{victim}")
        assert killed.code != 0, f"{point} was not reached: {killed.said}"
    resumed = run(tmp_path)
    assert resumed.code == 0, resumed.said
    assert check(tmp_path) == CLEAN


if os.environ.get("HEADRACE_KILL_MATRIX") == "all":

    @pytest.mark.parametrize("victim", VICTIMS)
    @pytest.mark.parametrize("point", POINTS)
    def test_nothing_is_lost_or_doubled_by_a_kill_at(
        point: str, victim: str, tmp_path: Path
    ) -> None:
        killed = run(tmp_path, HEADRACE_FAULT=f"{point}:{EPOCH}:{victim}")
        assert killed.code != 0, f"the fault was not reached: {killed.said}"
        resumed = run(tmp_path)
        assert resumed.code == 0, resumed.said
        assert check(tmp_path) == CLEAN


def test_a_kill_in_the_first_epoch_is_survived(tmp_path: Path) -> None:
    killed = run(tmp_path, HEADRACE_FAULT="K6:0:group")
    assert killed.code != 0, f"the fault was not reached: {killed.said}"
    assert run(tmp_path).code == 0
    assert check(tmp_path) == CLEAN


def test_a_kill_in_the_final_epoch_is_survived(tmp_path: Path) -> None:
    final = pipeline.ROWS // pipeline.ROWS_PER_EPOCH
    killed = run(tmp_path, HEADRACE_FAULT=f"K7:{final}:jvm")
    assert killed.code != 0, f"the fault was not reached: {killed.said}"
    resumed = run(tmp_path)
    assert resumed.code == 0, resumed.said
    assert check(tmp_path) == CLEAN
