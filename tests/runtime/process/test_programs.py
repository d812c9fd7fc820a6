"""Random programs of state operations and timers: the engine does what the interpreter does.

Rows come in any order around the watermark, early and late; epochs are done twice, state is restored in the middle
at other numbers of shards. Outputs with their times, late rows, dead letters and the state at the end are compared.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runtime.process.cases import RANDOM, Written, compare, written
from tests.runtime.process.programs import STATES
from tests.runtime.windows.cases import disturbances

FOREVER = tuple(name for name in STATES if "_" not in name)


@RANDOM
@given(written(states=FOREVER, ordered=False, on_error="fail"), disturbances())
def test_any_state_and_timers(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


@pytest.mark.parametrize("state", FOREVER)
@RANDOM
@given(how=disturbances(), data=st.data())
def test_each_state(state: str, how: Any, data: Any) -> None:
    program = data.draw(written(states=[state], ordered=False, on_error="fail"))
    compare(program.node(), program.epochs, **how)


@RANDOM
@given(written(ordered=False, on_error="fail"), disturbances())
def test_any_time_to_live(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


@RANDOM
@given(written(states=FOREVER, ordered=False, on_error="dead_letter"), disturbances())
def test_failing_rows_and_timers_leave_nothing_behind(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


@RANDOM
@given(written(states=FOREVER, ordered=True, on_error="fail"), disturbances())
def test_rows_in_the_order_of_time(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


@RANDOM
@given(written("co"), disturbances())
def test_two_inputs(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


@RANDOM
@given(written("broadcast"), disturbances())
def test_broadcast_rules(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


@RANDOM
@given(written(), disturbances())
def test_everything_together(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)
