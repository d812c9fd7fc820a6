import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headrace._commit.faults import Faults, KillAt
from headrace.errors import SetupError


def test_without_the_variable_nothing_happens() -> None:
    faults = Faults.from_environment({})
    assert type(faults) is Faults
    faults.reach("K6", 3)


@pytest.mark.parametrize("wish", ["K6", "K6:3", "K99:3:group", "K6:x:group", "K6:3:everybody"])
def test_a_misspelt_fault_is_refused(wish: str) -> None:
    with pytest.raises(SetupError, match="point:epoch:victim"):
        Faults.from_environment({"HEADRACE_FAULT": wish})


def test_the_fault_is_read_from_the_environment() -> None:
    faults = Faults.from_environment({"HEADRACE_FAULT": "K6:3:jvm", "HEADRACE_JVM_PID": "42"})
    assert isinstance(faults, KillAt)
    assert (faults.point, faults.epoch, faults.victim, faults.pid) == ("K6", 3, "jvm", 42)
    faults.reach("K6", 2)
    faults.reach("K5", 3)


@pytest.mark.parametrize("victim", ["group", "driver"])
def test_reaching_the_point_kills_at_once(victim: str) -> None:
    code = (
        "from headrace._commit.faults import Faults\n"
        "faults = Faults.from_environment()\n"
        "faults.reach('K6', 2)\n"
        "print('alive', flush=True)\n"
        "faults.reach('K6', 3)\n"
        "print('survived', flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HEADRACE_FAULT": f"K6:3:{victim}", "PYTHONPATH": "."},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == b"alive\n"
