"""Random tests draw the same examples in every run. `HEADRACE_EXPLORE=1` lets them look for new ones.

Tests that start a JVM or servers are run by one process, however many there are: two of them at a time would take as
long, fail for want of time, and kill each other's processes. `--dist loadgroup` goes by the mark, and looks for it in the
same hook: ours must come first.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("HEADRACE_EXPLORE") else "repeatable")

_ON_SPARK = Path(__file__).with_name("spark")
_HEAVY = ("spark", "crash", "services")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if _ON_SPARK in item.path.parents:
            item.add_marker(pytest.mark.spark)
        if any(item.get_closest_marker(ring) for ring in _HEAVY):
            item.add_marker(pytest.mark.xdist_group("heavy"))
