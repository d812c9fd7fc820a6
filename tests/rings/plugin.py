"""Chooses the tests of rings, puts them in order, and reports what each ring took; over its budget the run fails.

A ring's minutes are the durations of its tests, set-up and tear-down included, divided by the processes that share the suite:
what the ring takes by itself on as many idle cores.
"""

import os
import tomllib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.examples import EXPLORING
from tests.rings.cpu import CpuClock
from tests.rings.membership import ORDER, RINGS, ring_of
from tests.rings.sampling import left_out

__all__ = ["RingPlugin"]

_BUDGETS = Path(__file__).with_name("budgets.toml")
_SLOWEST = 20


class RingPlugin:
    """One run of pytest; with xdist, one in the controller and one in each worker."""

    def __init__(self, config: pytest.Config, budgets: Path = _BUDGETS) -> None:
        self._budget_file = budgets
        self._chosen: list[str] = config.getoption("rings") or list(RINGS)
        self._has_budgets: bool = config.getoption("budgets")
        self._is_worker = hasattr(config, "workerinput")
        self._processes = max(1, getattr(config.option, "numprocesses", None) or 1)
        self._seconds: Counter[str] = Counter()
        self._by_test: dict[str, float] = defaultdict(float)
        self._tests: dict[str, set[str]] = defaultdict(set)
        self._running: dict[Any, str] = {}
        self._cpu = CpuClock(self.working_on)

    # Choosing and ordering

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        ring = {item: ring_of(mark.name for mark in item.iter_markers()) for item in items}
        for item in items:
            item.user_properties.append(("ring", ring[item]))
        unwanted = set() if EXPLORING else left_out(items)
        unwanted |= {item for item in items if ring[item] not in self._chosen}
        if unwanted:
            config.hook.pytest_deselected(items=list(unwanted))
        items[:] = sorted(
            (item for item in items if item not in unwanted),
            key=lambda item: ORDER.index(ring[item]),
        )

    # Measuring

    def pytest_sessionstart(self) -> None:
        if not self._is_worker:
            self._cpu.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ring = dict(report.user_properties).get("ring")
        if self._is_worker or not isinstance(ring, str):
            return
        self._running[getattr(report, "node", None)] = ring
        self._seconds[ring] += report.duration
        self._by_test[report.nodeid] += report.duration
        self._tests[ring].add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._running.pop(node, None)

    def working_on(self) -> list[str]:
        """The ring of each process that has tests left."""
        return list(self._running.values())

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_worker:
            return
        self._cpu.stop()
        if self._over_budget() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    # Reporting

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._is_worker or not self._by_test:
            return
        write = terminalreporter.write_line
        write(f"{'ring':10}{'tests':>7}{'minutes':>9}{'CPU minutes':>13}{'budget':>8}")
        for ring in self._measured():
            write(
                f"{ring:10}{len(self._tests[ring]):7}{self._minutes(ring):9.2f}"
                f"{self._cpu.seconds[ring] / 60:13.2f}{self._budgets()[ring]:8.1f}"
            )
        write(f"the {_SLOWEST} slowest tests:")
        slowest = sorted(self._by_test.items(), key=lambda pair: -pair[1])[:_SLOWEST]
        for test, seconds in slowest:
            write(f"{seconds:8.2f} s  {test}")
        for ring in self._over_budget():
            terminalreporter.write_line(
                f"OVER BUDGET: the {ring} ring took {self._minutes(ring):.2f} minutes,"
                f" {self._budgets()[ring]:.1f} are allowed ({self._budget_file.parent.name}/{self._budget_file.name})",
                red=True,
            )

    def _measured(self) -> Sequence[str]:
        return [ring for ring in reversed(RINGS) if self._tests[ring]]

    def _minutes(self, ring: str) -> float:
        return self._seconds[ring] / self._processes / 60

    def _budgets(self) -> dict[str, float]:
        budgets: dict[str, float] = tomllib.loads(self._budget_file.read_text())["minutes"]
        return {
            ring: minutes * (2 if os.environ.get("CI") else 1) for ring, minutes in budgets.items()
        }

    def _over_budget(self) -> list[str]:
        if not self._has_budgets:
            return []
        return [ring for ring in self._measured() if self._minutes(ring) > self._budgets()[ring]]
