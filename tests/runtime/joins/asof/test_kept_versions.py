"""Versions within a tolerance are kept in slices of time of at least a second: which of them a left row finds."""

import pytest

from headrace._graph.nodes import MAIN
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import StepHarness
from tests.runtime.joins.asof.cases import left, right, step

SECOND_US = 1_000_000


@pytest.mark.parametrize(("at", "found"), [(85, 80), (100, 80), (180, 80), (181, None)])
def test_the_last_version_counts_although_earlier_slices_keep_older_ones(
    at: int, found: int | None
) -> None:
    harness = StepHarness(step("left", tolerance_us=100 * SECOND_US))
    for version in (20, 40, 60, 80):
        rows = [right(version * SECOND_US, n=version)]
        harness.run([StepEpoch((version - 20) * SECOND_US, (version - 1) * SECOND_US, rows)])
        harness.run([StepEpoch((version - 1) * SECOND_US, version * SECOND_US)])
    row = left(at * SECOND_US)
    out = harness.run([StepEpoch(80 * SECOND_US, at * SECOND_US, (), [row])])[MAIN]
    assert [row["n_right"] for row in out] == [found]
