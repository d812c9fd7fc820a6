"""How many random examples a test draws: few in an ordinary run, twenty times as many with `HEADRACE_EXPLORE=1`.

An ordinary run draws the same ones each time; exploring looks for new ones (the profiles in `conftest`).
"""

import os
from typing import Any

from hypothesis import settings

__all__ = ["EXPLORING", "examples"]

EXPLORING = bool(os.environ.get("HEADRACE_EXPLORE"))
_TIMES = 20


def examples(many: int, **said: Any) -> settings:
    """So many examples by default; `said` is passed on to `hypothesis.settings`."""
    return settings(max_examples=many * _TIMES if EXPLORING else many, **said)
