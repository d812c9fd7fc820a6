"""Random programs of state operations and timers: the engine does what the interpreter does.

Rows come in any order around the watermark, early and late; epochs are done twice, state is restored in the middle
at other numbers of shards.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.runtime.process.cases import RANDOM, Written, compare, written
from tests.runtime.windows.cases import disturbances

VALUES = ("value", "word", "reducing", "aggregating")


@RANDOM
@given(written(states=VALUES, ordered=False, on_error="fail"), disturbances())
def test_values_and_timers(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)
