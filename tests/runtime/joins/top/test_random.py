"""The best pair against its oracle on random rows, cuts, restores and crashes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import StepHarness
from headrace.watermarks import NO_WATERMARK
from tests.examples import examples
from tests.runtime.contract import assert_same, kept_rows
from tests.runtime.joins.top.cases import answer, row, shown, top_node

KEYS = st.sampled_from([1.0, 2.0, 3.0, float("nan"), -0.0, 0.0, None])
SMALL = st.integers(0, 4)


@st.composite
def rows(draw: st.DrawFn) -> SidedRow:
    if draw(st.booleans()):
        fields = {"id": draw(KEYS), "low": draw(SMALL), "high": draw(SMALL) + 1}
        return row(1, 0, fields)
    return row(1, 1, {"of": draw(KEYS), "price": draw(SMALL), "time": draw(SMALL)})


EPOCHS = st.lists(st.tuples(st.lists(rows(), max_size=8), st.lists(rows(), max_size=4)), max_size=6)


@examples(60)
@given(EPOCHS, st.dictionaries(st.integers(0, 5), st.integers(1, 3)), st.lists(st.integers(0, 5)))
def test_the_best_pair_is_that_of_the_oracle(drawn, restores, crashes) -> None:
    epochs = [StepEpoch(NO_WATERMARK, NO_WATERMARK, late, early) for late, early in drawn]
    found = StepHarness(top_node(), 2).run(epochs, restores=restores, crashes=crashes)
    assert_same(_same_zero(shown(found)), _same_zero(answer(epochs)))


def test_only_the_best_partner_is_kept() -> None:
    bids = [row(1, 1, {"of": 1.0, "price": n % 50, "time": 1}) for n in range(500)]
    auction = row(1, 0, {"id": 1.0, "low": 0, "high": 5})
    harness = StepHarness(top_node())
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, bids)])
    assert kept_rows(harness) == 500 + 1  # and a counter of arrivals
    harness.run([StepEpoch(NO_WATERMARK, NO_WATERMARK, [auction, *bids])])
    assert kept_rows(harness) == 2 + 1


def _same_zero(outputs):
    def plain(value):
        return 0.0 if value == 0 and isinstance(value, float) else value

    return {
        output: [{name: plain(value) for name, value in fields.items()} for fields in found]
        for output, found in outputs.items()
    }
