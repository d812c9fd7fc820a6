"""Twenty kills in one job, at times and of victims drawn from a seed. The same seed gives the same plan."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.crash.checker import CLEAN, check
from tests.crash.killing import end_group, finish, jvm_of, launch, run

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("HEADRACE_KILL_SEED", "20250101"))
KILLS = 20
FIRST_S, LAST_S = 2.0, 14.0


def schedule(seed: int) -> list[tuple[float, str]]:
    """(seconds after the start, victim) of each kill."""
    draw = random.Random(seed)
    return [
        (draw.uniform(FIRST_S, LAST_S), draw.choice(("group", "driver", "jvm")))
        for _ in range(KILLS)
    ]


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert schedule(SEED) == schedule(SEED)
    assert schedule(SEED) != schedule(SEED + 1)


def test_twenty_random_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    injected = 0
    for after_s, victim in schedule(SEED):
        process = launch(tmp_path)
        time.sleep(after_s)
        pid = jvm_of(process) if victim == "jvm" else process.pid
        injected += 1
        if victim == "group" or pid is None:
            end_group(process)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        finish(process)
    ended = run(tmp_path)
    assert ended.code == 0, ended.said
    assert injected == KILLS
    assert check(tmp_path) == CLEAN, f"seed {SEED}"
