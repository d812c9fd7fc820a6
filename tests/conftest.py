"""Random tests draw the same examples in every run. `HEADRACE_EXPLORE=1` lets them look for new ones.

Tests that start a JVM or servers are run by one process, however many there are: two of them at a time would take as
long and fail for want of time. `--dist loadgroup` goes by the mark.
"""

import os
from collections.abc import Sequence

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("HEADRACE_EXPLORE") else "repeatable")

_HEAVY = ("spark", "crash", "services")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(ring) for ring in _HEAVY):
            item.add_marker(pytest.mark.xdist_group("heavy"))
