"""Two inputs that share the state and the timers of a key: the engine does what the interpreter does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given

import headrace as hr
from headrace._graph.nodes import ERRORS, LATE, MAIN
from headrace.errors import UserCodeError
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness
from tests.runtime.process.cases import RANDOM, Written, compare, process_node, written
from tests.runtime.process.programs import STATES
from tests.runtime.windows.cases import disturbances

#: Those that end have tests of their own.
FOREVER = tuple(name for name in STATES if "_" not in name)
LEFT = {"id": int, "n": int}
RIGHT = {"of": int, "text": str}


@RANDOM
@given(written("co", states=FOREVER, ordered=False), disturbances())
def test_rows_of_both_inputs_share_state_and_timers(program: Written, how: Any) -> None:
    compare(program.node(), [first_input_first(epoch) for epoch in program.epochs], **how)


@RANDOM
@given(written("co", states=FOREVER, ordered=True), disturbances())
def test_rows_of_both_inputs_in_the_order_of_their_time(program: Written, how: Any) -> None:
    compare(program.node(), program.epochs, **how)


def first_input_first(epoch: Any) -> Any:
    """Nothing is promised about the order between the inputs; this is the one that the engine has."""

    def sort(rows: Any) -> list[Any]:
        return sorted(rows, key=lambda row: row.side)

    return epoch._replace(rows=sort(epoch.rows), early=sort(epoch.early))


class Told(hr.KeyedCoProcessFunction):
    """Says what has come for the key of a row by then."""

    seen: hr.state.List[str]

    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        return self._see(str(value.n), ctx)

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        if value.text == "bad":
            raise ValueError("bad")
        return self._see(value.text, ctx)

    def _see(self, what: str, ctx: Any) -> Iterator[Any]:
        self.seen.add(what)
        yield {"said": f"{ctx.key}: {' '.join(self.seen.get())}"}


def step(**said: Any) -> Any:
    return process_node(
        Told(), "co", schema={"said": str}, inputs=[LEFT, RIGHT], keys=[("id",), ("of",)], **said
    )


def left(at: int, key: int | None, n: int) -> SidedRow:
    return SidedRow(at, {"id": key, "n": n}, 0, ("left", "0", n))


def right(at: int, key: int | None, text: str) -> SidedRow:
    return SidedRow(at, {"of": key, "text": text}, 1, ("right", "0", at))


def test_keys_have_other_names_and_are_the_same() -> None:
    epochs = [StepEpoch(0, 1, [left(5, 7, 1), right(6, 7, "a"), right(6, 8, "b"), left(7, 8, 2)])]
    found = StepHarness(step(), 3).run(epochs)[MAIN]
    assert sorted(row["said"] for row in found) == ["7: 1", "7: 1 a", "8: 2", "8: 2 b"]


def test_late_rows_of_both_go_to_one_output_with_the_columns_of_both() -> None:
    rows = [left(5, 7, 1), right(6, 7, "a"), left(12, 7, 2), right(11, 7, "b")]
    epochs = [StepEpoch(0, 10, rows), StepEpoch(10, 20)]
    found = StepHarness(step(ordered=True), 2).run(epochs)
    assert [row["said"] for row in found[MAIN]] == ["7: b", "7: b 2"]
    assert found[LATE] == [
        {"id": 7, "n": 1, "of": None, "text": None},
        {"id": None, "n": None, "of": 7, "text": "a"},
    ]


def test_null_keys_of_either_input_are_dead_letters() -> None:
    epochs = [StepEpoch(0, 1, [left(5, None, 1), right(6, None, "a")])]
    found = StepHarness(step()).run(epochs)
    assert [row["cause"] for row in found[ERRORS]] == ["null key 'id'", "null key 'of'"]


def test_a_row_that_fails_is_named_or_becomes_a_dead_letter_and_leaves_nothing() -> None:
    epochs = [StepEpoch(0, 1, [left(5, 7, 1), right(6, 7, "bad"), right(7, 7, "a")])]
    with pytest.raises(UserCodeError, match=r"(?s)ValueError: bad.*key 7.*text='bad'"):
        StepHarness(step()).run(epochs)
    found = StepHarness(step(on_error="dead_letter")).run(epochs)
    assert [row["said"] for row in found[MAIN]] == ["7: 1", "7: 1 a"]
    (dead,) = found[ERRORS]
    assert (dead["cause"], dead["partition"], dead["offset"]) == ("ValueError: bad", "0", 6)
    assert dead["payload"] == '{"of": 7, "text": "bad"}'
