"""The rings of the suite: which test is in which, which run, in what order, and that a run over its budget fails."""

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rings import RingPlugin, SharingScheduler, ring_of
from tests.rings.sampling import left_out

ROOT = Path(__file__).parents[2]

#: Each of its tests takes 30 seconds of set-up, call and tear-down together, as far as its reports say.
CONFTEST = """
from pathlib import Path

import pytest

from tests.conftest import pytest_addoption
from tests.rings import RingPlugin


def pytest_configure(config):
    for ring in ("spark", "services", "crash"):
        config.addinivalue_line("markers", ring)
    config.pluginmanager.register(RingPlugin(config, Path(__file__).with_name("budgets.toml")))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    report.duration = 10.0
    return report
"""
TESTS = """
import pytest

def test_quick(): pass
@pytest.mark.crash
def test_kill(): pass
@pytest.mark.spark
def test_session(): pass
def test_also_quick(): pass
@pytest.mark.services
def test_server(): pass
"""
#: A minute is what the tests of the pure ring take.
BUDGETS = "[minutes]\npure = {}\nspark = 1\nservices = 1\ncrash = 0.3"


def run_of(tree: Path, *arguments: str, pure: float, **environment: str) -> tuple[int, str]:
    """Exit code and output of pytest in a tree of five tests."""
    for name, text in (
        ("conftest.py", CONFTEST),
        ("test_five.py", TESTS),
        ("budgets.toml", BUDGETS.format(pure)),
        ("pytest.ini", "[pytest]"),
    ):
        (tree / name).write_text(text)
    ours = {
        name: value
        for name, value in os.environ.items()
        if name != "CI" and not name.startswith("PYTEST_")
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments],
        cwd=tree,
        env={**ours, **environment, "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def ran(output: str) -> list[str]:
    lines = [line for line in output.splitlines() if " PASSED " in line]
    return [line.partition("::")[2].split()[0] for line in lines]


def test_a_run_fails_if_a_ring_exceeds_its_budget(tmp_path: Path) -> None:
    code, output = run_of(tmp_path, "--budgets", pure=1.1)
    assert code == pytest.ExitCode.TESTS_FAILED, output
    where = f"{tmp_path.name}/budgets.toml"
    assert [line for line in output.splitlines() if "OVER BUDGET" in line] == [
        f"OVER BUDGET: the crash ring took 0.50 minutes, 0.3 are allowed ({where})"
    ]
    assert ran(output) == ["test_session", "test_server", "test_kill", "test_quick", "test_also_quick"]  # fmt: skip
    assert [line.split()[:3] for line in output.splitlines() if line.endswith(" 1.1")] == [
        ["pure", "2", "1.00"]
    ]


def test_twice_the_budget_is_allowed_in_ci_and_only_the_chosen_rings_run(tmp_path: Path) -> None:
    code, output = run_of(
        tmp_path, "--budgets", "--ring", "pure", "--ring", "crash", pure=0.55, CI="1"
    )
    assert code == pytest.ExitCode.OK, output
    assert "OVER BUDGET" not in output
    assert ran(output) == ["test_kill", "test_quick", "test_also_quick"]


@pytest.mark.parametrize(
    ("marks", "ring"),
    [
        ((), "pure"),
        (("parametrize", "sampled"), "pure"),
        (("parametrize", "spark"), "spark"),
        (("spark", "services"), "services"),
        (("spark", "crash", "services"), "crash"),
    ],
)
def test_the_slowest_thing_that_a_test_needs_decides_its_ring(
    marks: tuple[str, ...], ring: str
) -> None:
    assert ring_of(marks) == ring


@dataclass(eq=False)
class Combination:
    """As much of a test with parameters as sampling reads."""

    values: Mapping[str, object]
    sampled: bool
    originalname: str = "test_any"
    parent: object = None

    @property
    def name(self) -> str:
        return f"{self.originalname}[{self.values}]"

    @property
    def callspec(self) -> Any:
        return SimpleNamespace(params=self.values)

    def get_closest_marker(self, name: str) -> object:
        return (self.sampled and name == "sampled") or None


def combinations(**named: Any) -> Any:
    sides = itertools.product(("left", "right", "full"), range(5), (None, "fail"))
    return [
        Combination({"how": how, "seed": seed, "error": error}, **named)
        for how, seed, error in sides
    ]


def test_of_a_sampled_test_each_value_of_each_parameter_runs() -> None:
    whole = combinations(sampled=True)
    kept = [one for one in whole if one not in left_out(whole)]
    assert len(kept) <= 8
    assert {value for one in kept for value in one.values.items()} == {
        value for one in whole for value in one.values.items()
    }


def test_the_same_combinations_run_each_time_and_each_test_has_its_own() -> None:
    def chosen(*names: str) -> Any:
        tests = [one for name in names for one in combinations(sampled=True, originalname=name)]
        without = left_out(tests)
        return Counter(one.name for one in tests if one not in without)

    assert chosen("test_a", "test_b") == chosen("test_a") + chosen("test_b")


def test_without_the_mark_all_combinations_run() -> None:
    assert left_out(combinations(sampled=False)) == set()


def test_tests_that_share_servers_and_a_session_run_in_one_process_and_others_one_by_one() -> None:
    scheduler = SharingScheduler.__new__(SharingScheduler)
    tests = ["tests/spark/test_a.py::test_a", "tests/services/test_b.py::test_b[1]"]
    assert {scheduler._split_scope(test) for test in tests} == {"sharing"}
    other = ["tests/plan/test_c.py::test_c[1]", "tests/plan/test_c.py::test_c[2]"]
    assert [scheduler._split_scope(test) for test in other] == other


def test_a_process_without_tests_left_takes_no_cpu_time_for_its_last_ring() -> None:
    options: Any = SimpleNamespace(getoption=lambda _: None, option=SimpleNamespace(numprocesses=2))
    plugin = RingPlugin(options)
    for node, ring in (("gw0", "pure"), ("gw1", "spark"), ("gw1", "services")):
        report: Any = SimpleNamespace(
            node=node, user_properties=[("ring", ring)], duration=1.0, nodeid="test"
        )
        plugin.pytest_runtest_logreport(report)
    assert plugin.working_on() == ["pure", "services"]
    plugin.pytest_testnodedown("gw0")
    assert plugin.working_on() == ["services"]
