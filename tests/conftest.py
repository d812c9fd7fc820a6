"""Random tests draw the same few examples in every run. `HEADRACE_EXPLORE=1` lets them look for new ones, and for many more.

Two processes share the suite (`scripts/test`), also the tests that start a JVM or servers: each process has its own, and a
test that kills looks for its victims among what it started itself. Rings and their budgets: `tests/rings`.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from tests.rings import RINGS, RingPlugin

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("HEADRACE_EXPLORE") else "repeatable")

_ON_SPARK = Path(__file__).with_name("spark")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rings")
    group.addoption(
        "--ring",
        dest="rings",
        action="append",
        choices=RINGS,
        help="run this ring only (may be repeated)",
    )
    group.addoption(
        "--budgets",
        action="store_true",
        help="fail if a ring takes longer than tests/rings/budgets.toml allows",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RingPlugin(config))


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if _ON_SPARK in item.path.parents:
            item.add_marker(pytest.mark.spark)
