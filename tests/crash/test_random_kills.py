"""Kills in one job, at moments and of victims drawn from a seed. The same seed gives the same plan.

Only in `scripts/long kills`; the suite kills a job from log to log at random (`test_log`).
"""

import contextlib
import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace._commit.checkpoint import durable_epoch
from headrace._commit.paths import Layout
from tests.crash import pipeline
from tests.crash.checker import CLEAN, check
from tests.crash.killing import (
    VICTIMS,
    WHOLE_MATRIX,
    end_group,
    finish,
    jvm_of,
    launch,
    run,
    wait_until,
)

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("HEADRACE_KILL_SEED", "20250101"))
KILLS = 20
#: More than the job can do between the kills, so that each of them finds it at work.
ROWS = 20_000 * KILLS


@dataclass(frozen=True)
class Kill:
    """So long after the start, or after the run's first new commit; and whom."""

    at_work: bool
    after_s: float
    victim: str


def schedule(seed: int) -> list[Kill]:
    """Half of the kills meet the start of a job, half meet it at work."""
    draw = random.Random(seed)
    return [
        Kill(
            at_work=number % 2 == 1,
            after_s=draw.uniform(0.0, 1.5) if number % 2 else draw.uniform(1.0, 7.0),
            victim=draw.choice(VICTIMS),
        )
        for number in range(KILLS)
    ]


if WHOLE_MATRIX:

    def test_the_same_seed_gives_the_same_schedule() -> None:
        assert schedule(SEED) == schedule(SEED)
        assert schedule(SEED) != schedule(SEED + 1)

    def test_random_kills_lose_and_double_nothing(tmp_path: Path) -> None:
        layout = Layout(tmp_path / "state")
        injected = 0
        for kill in schedule(SEED):
            before = durable_epoch(layout)
            process = launch(tmp_path, CRASH_ROWS=str(ROWS))
            if kill.at_work:
                assert wait_until(lambda: durable_epoch(layout) > before)  # noqa: B023
            time.sleep(kill.after_s)
            pid = jvm_of(process) if kill.victim == "jvm" else process.pid
            injected += 1
            if kill.victim == "group" or pid is None:
                end_group(process)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            finish(process)
        assert durable_epoch(layout) < ROWS // pipeline.ROWS_PER_EPOCH, "done before the last kill"
        ended = run(tmp_path, CRASH_ROWS=str(ROWS))
        assert ended.code == 0, ended.said
        assert injected == KILLS
        assert check(tmp_path, ROWS) == CLEAN, f"seed {SEED}"
