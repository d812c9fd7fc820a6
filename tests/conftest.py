"""Random tests draw the same few examples in every run. `HEADRACE_EXPLORE=1` lets them look for new ones, and for many more.

Two processes share the suite (`scripts/test`). A test that kills looks for its victims among what it started itself. Rings,
their budgets and who runs what: `tests/rings`.
"""

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import EXPLORING, examples
from tests.rings import RINGS, RingPlugin, SharingScheduler

_PATIENT: Final = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("repeatable", examples(25), derandomize=True, database=None, **_PATIENT)
settings.register_profile("explore", examples(25), **_PATIENT)
settings.load_profile("explore" if EXPLORING else "repeatable")

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharingScheduler | None:
    return SharingScheduler(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_finish() -> None:
    """What stays to the end is not searched for garbage again and again."""
    gc.collect()
    gc.freeze()
