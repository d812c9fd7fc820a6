"""Two inputs that share the state and the timers of a key: the engine does what the interpreter does."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.runtime.process.cases import RANDOM, Written, compare, written
from tests.runtime.process.programs import STATES
from tests.runtime.windows.cases import disturbances

FOREVER = tuple(name for name in STATES if "_" not in name)


@RANDOM
@given(written("co", states=FOREVER, ordered=False, on_error="fail"), disturbances())
def test_rows_of_both_inputs_share_state_and_timers(program: Written, how: Any) -> None:
    epochs = [first_input_first(epoch) for epoch in program.epochs]
    compare(program.node(), epochs, **how)


def first_input_first(epoch: Any) -> Any:
    """Nothing is promised about the order between the inputs; this is the one that the engine has."""

    def sort(rows: Any) -> list[Any]:
        return sorted(rows, key=lambda row: row.side)

    return epoch._replace(rows=sort(epoch.rows), early=sort(epoch.early))
