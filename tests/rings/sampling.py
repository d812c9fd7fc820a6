"""`@pytest.mark.sampled`: of the combinations of a test's parameters, so many that each value of each parameter occurs.

The choice is the same in every run. With `HEADRACE_EXPLORE=1` all combinations run.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

__all__ = ["left_out"]

_Value = tuple[str, int]


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The combinations that need not run because others have the same values."""
    functions: dict[Any, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            functions[item.parent, getattr(item, "originalname", "")].append(item)
    return {item for combinations in functions.values() for item in _superfluous(combinations)}


def _superfluous(combinations: Sequence[pytest.Item]) -> list[pytest.Item]:
    drawn = random.Random(combinations[0].name).sample(combinations, len(combinations))
    seen: set[_Value] = set()
    superfluous = []
    for item in drawn:
        values = _values(item)
        if values <= seen:
            superfluous.append(item)
        seen |= values
    return superfluous


def _values(item: pytest.Item) -> set[_Value]:
    """Values by identity: the combinations of one test share them."""
    return {(name, id(value)) for name, value in item.callspec.params.items()}  # type: ignore[attr-defined]
