"""The rows with the extreme of their window: the contract, and an oracle on random rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace._graph.join_columns import joined_columns, result_schema_of
from headrace._graph.join_nodes import WindowExtreme
from headrace._graph.nodes import ERRORS, LATE, MAIN, Port
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Window
from tests.examples import examples
from tests.oracle.joins.extreme import ExtremeOracle
from tests.runtime.contract import KeyedContract, assert_same, kept_rows

SCHEMA = pa.schema([("key", pa.string()), ("price", pa.int64()), ("n", pa.int64())])
TEN = Window(size_us=10, slide_us=10)
_INSTANT = pa.timestamp("us", tz="UTC")


def node(keys: tuple[str, ...] = (), *, greatest: bool = True) -> WindowExtreme:
    columns = joined_columns([SCHEMA], [keys], "semi")
    bounds = [pa.field("window_start", _INSTANT), pa.field("window_end", _INSTANT)]
    return WindowExtreme(
        id=0, uid="best", inputs=(Port(1),), schema=result_schema_of(columns, [SCHEMA], bounds),
        keys=(keys,), input_schemas=(SCHEMA,), columns=columns, how="semi", window=TEN,
        column="price", greatest=greatest,
    )  # fmt: skip


def row(at: int, key: str | None, price: int | None, n: int) -> SidedRow:
    return SidedRow(at, {"key": key, "price": price, "n": n})


def answer(oracle: ExtremeOracle, epochs: Sequence[StepEpoch]) -> Outputs:
    said = [found for epoch in epochs for found in oracle.epoch(epoch)]
    return {MAIN: said, LATE: oracle.late, ERRORS: [{} for _ in oracle.errors]}


def shown(outputs: Outputs) -> Outputs:
    return outputs | {ERRORS: [{} for _ in outputs.get(ERRORS, [])]}


EPOCHS = (
    StepEpoch(NO_WATERMARK, 2, [row(3, "a", 5, 1), row(9, "b", 5, 2), row(4, "a", 1, 3)]),
    StepEpoch(2, 7, [row(15, "a", 1, 4), row(8, "a", 5, 5), row(8, "b", None, 6)]),
    StepEpoch(7, 11, [row(3, "a", 9, 7), row(12, "b", 7, 8)], [row(9, "b", 6, 9)]),
    StepEpoch(11, 19, [row(25, "c", 2, 10), row(31, "a", 0, 11)], [row(13, "a", 7, 12)]),
    StepEpoch(19, END_OF_TIME, [], [row(25, "a", 2, 13)]),
)


class TestGreatestOfAll(KeyedContract):
    keys: tuple[str, ...] = ()
    greatest = True

    def node(self) -> WindowExtreme:
        return node(self.keys, greatest=self.greatest)

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(ExtremeOracle(TEN, self.keys, "price", greatest=self.greatest), epochs)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))


class TestLeastOfEachKey(TestGreatestOfAll):
    keys = ("key",)
    greatest = False


ROWS = st.builds(
    row,
    st.integers(0, 30),
    st.sampled_from(["a", "b", "", None]),
    st.one_of(st.none(), st.integers(-2, 2)),
    st.integers(0, 9),
)


@examples(50)
@given(
    st.lists(st.tuples(st.lists(ROWS, max_size=8), st.integers(0, 12)), max_size=6),
    st.dictionaries(st.integers(0, 5), st.integers(1, 3)),
    st.booleans(),
)
def test_random_rows_have_the_extremes_of_the_oracle(drawn, restores, greatest) -> None:
    epochs, reached = [], NO_WATERMARK
    for rows, step in drawn:
        after = step if reached == NO_WATERMARK else reached + step
        epochs.append(StepEpoch(reached, after, rows))
        reached = after
    epochs.append(StepEpoch(reached, END_OF_TIME))
    found = StepHarness(node(("key",), greatest=greatest), 2).run(epochs, restores=restores)
    oracle = ExtremeOracle(TEN, ("key",), "price", greatest=greatest)
    assert_same(shown(found), answer(oracle, epochs))


def test_rows_that_are_beaten_are_not_kept() -> None:
    harness = StepHarness(node())
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, [row(1, "a", n, n) for n in range(100)])])
    assert kept_rows(harness) == 1 + 1  # and a counter of arrivals
