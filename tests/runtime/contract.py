"""The contract of every keyed operator: what any of them must keep, whatever it computes.

A test module gets all of these tests by deriving from `KeyedContract` and saying which step, which rows and
what the right answer is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pytest

from headrace._graph.nodes import ERRORS, LATE, MAIN
from headrace._runtime import registry
from headrace._runtime.state import MemoryArrays, ShardState
from headrace.testing.epochs import StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import NO_WATERMARK
from tests.examples import EXPLORING


class KeyedContract(ABC):
    """Derive and fill in; the names of the tests are the contract."""

    #: A row can come too late for this step.
    has_late_rows = True
    #: Rows that never fill a window are still there when no more can come.
    keeps_a_rest = False

    @abstractmethod
    def node(self) -> Any:
        """The step."""

    @abstractmethod
    def epochs(self) -> Sequence[StepEpoch]:
        """At least four epochs with rows out of order, late rows, early rows and a last one that ends all."""

    @abstractmethod
    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        """The right answer, from an oracle."""

    def harness(self, shards: int = 1, **how: Any) -> StepHarness:
        """The step on so many shards."""
        return StepHarness(self.node(), shards, **how)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        """It says of these epochs what is right of all that the sample has; `how` is `StepHarness.run`'s."""
        assert_same(harness.run(epochs, **how), self.expected(self.epochs()))

    def test_answers_as_its_oracle(self) -> None:
        self.agree(self.harness(), self.epochs())

    def test_sample_has_results_and_late_rows(self) -> None:
        # Otherwise the other tests could pass by saying nothing.
        expected = self.expected(self.epochs())
        assert expected[MAIN]
        assert bool(expected[LATE]) is self.has_late_rows

    def test_an_epoch_without_rows_or_time_says_nothing_and_writes_nothing(self) -> None:
        harness = self.harness()
        idle = StepEpoch(NO_WATERMARK, NO_WATERMARK)
        assert not any(harness.run([idle, idle]).values())
        assert harness.stores[0].manifest() is None

    def test_an_idle_epoch_in_between_changes_nothing(self) -> None:
        epochs = list(self.epochs())
        reached, clock = epochs[1].watermark, epochs[1].clock
        epochs.insert(2, StepEpoch(reached, reached, clock_before=clock, clock=clock))
        self.agree(self.harness(), epochs)

    @pytest.mark.parametrize("shards", [2, 3])
    def test_the_number_of_shards_does_not_show(self, shards: int) -> None:
        self.agree(self.harness(shards), self.epochs())

    @pytest.mark.parametrize("rows", [1, 3])
    def test_the_size_of_batches_does_not_show(self, rows: int) -> None:
        self.agree(self.harness(2, batch_rows=rows), self.epochs())

    def test_state_is_restored_after_every_epoch(self) -> None:
        everywhere = dict.fromkeys(range(len(self.epochs())), 2)
        self.agree(self.harness(2), self.epochs(), restores=everywhere)

    @pytest.mark.parametrize("counts", [(1, 3), (2, 3, 1)], ids=["1-3", "2-3-1"])
    def test_state_moves_to_another_number_of_shards(self, counts: tuple[int, ...]) -> None:
        epochs = self.epochs()
        moves = {at: counts[at % len(counts)] for at in range(1, len(epochs))}
        self.agree(self.harness(counts[0]), epochs, restores=moves)

    def test_state_that_moves_once_answers_as_if_it_had_not(self) -> None:
        epochs = self.epochs()
        for at in range(1, len(epochs)) if EXPLORING else [len(epochs) // 2]:
            self.agree(self.harness(3), epochs, restores={at: 2})

    def test_an_epoch_that_failed_is_done_again(self) -> None:
        self.agree(self.harness(2), self.epochs(), crashes=range(len(self.epochs())))

    def test_nothing_is_kept_behind_the_end_of_time(self) -> None:
        harness = self.harness()
        harness.run(self.epochs())
        assert (kept_rows(harness) > 0) is self.keeps_a_rest


def assert_same(found: Outputs, expected: Outputs) -> None:
    """The same rows on every output, in whatever order; floats may differ in their last digits."""
    for output in sorted({MAIN, LATE, ERRORS, *found, *expected}):
        assert sort(found.get(output, [])) == sort(expected.get(output, [])), output


def sort(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in one order, comparable."""
    return sorted(map(_comparable, rows), key=repr)


def kept_rows(harness: StepHarness) -> int:
    """How many rows of state there are, as a restore sees them."""
    specs = registry.tables(harness.node)
    kept = 0
    for store in harness.stores:
        state = ShardState(specs, store, MemoryArrays(), range(128))
        state.open()
        kept += sum(state.table(s.name, b).size for s in specs for b in state.buckets(s.name))
    return kept


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _rounded(row[name]) for name in sorted(row)}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        # 0.0 + ... turns -0.0 into 0.0; a NaN is not equal to itself, its text is.
        return "nan" if value != value else 0.0 + float(f"{value:.9e}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value
