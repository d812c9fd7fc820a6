"""Random tests draw the same examples in every run. `HEADRACE_EXPLORE=1` lets them look for new ones.

Two processes share the suite (`scripts/test`), a test at a time, also those that start a JVM or servers: each process has
its own, and a test that kills looks for its victims among what it started itself.
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


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if _ON_SPARK in item.path.parents:
            item.add_marker(pytest.mark.spark)
