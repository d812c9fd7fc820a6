"""The contract of process functions: a sample of rows, and what must hold of any function that is given them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from headrace._graph.nodes import ERRORS, KeyedProcess
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import Outputs, StepHarness
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from tests.oracle import ProcessOracle
from tests.runtime.contract import KeyedContract, assert_same
from tests.runtime.process import written
from tests.runtime.process.cases import answer, expected_state, final_state, process_node, shown

INPUT = {"key": str, "n": int}
OTHER = {"name": str, "code": int}


def row(at: int, key: str | None, n: int) -> SidedRow:
    """Of the first input."""
    return SidedRow(at, {"key": key, "n": n}, 0, ("source", str(n % 2), 1000 * at + n))


def other(at: int, name: str, code: int) -> SidedRow:
    """Of the second."""
    return SidedRow(at, {"name": name, "code": code}, 1, ("other", "0", 1000 * at + code))


#: Disorder, rows behind the watermark, ties, null keys, keys that come back; timers between all of these.
EPOCHS = (
    StepEpoch(
        NO_WATERMARK, NO_WATERMARK, [row(12, "a", 1), row(3, "b", 2), row(7, "a", 9)], (), 0, 3
    ),
    StepEpoch(
        NO_WATERMARK, 9, [row(11, "a", 4), row(8, "c", 5), row(12, "a", 3), row(0, None, 6)], (), 3, 5
    ),
    StepEpoch(
        9, 22, [row(13, "b", 7), row(23, "a", 13), row(24, "ä", 8)],
        [row(9, "e", 4), row(15, "c", 9), row(15, "c", 2)], 5, 9,
    ),
    StepEpoch(
        22, 26, [row(13, "b", 9), row(40, "d", 1), row(30, "a", 6), row(24, "ä", 2)],
        [row(24, "ä", 13)], 9, 10,
    ),
    StepEpoch(26, 33, (), [row(30, "a", 5)], 10, 14),
    StepEpoch(33, END_OF_TIME, [], [row(41, "a", 2), row(35, "d", 8)], 14, 20),
)  # fmt: skip

#: What the second input has, by epoch: its rows, and those that come early.
OTHERS: dict[int, tuple[list[SidedRow], list[SidedRow]]] = {
    0: ([other(5, "a", 2), other(13, "b", 3)], []),
    2: ([other(25, "c", 4), other(14, "a", 5)], [other(12, "b", 7), other(24, "c", 6)]),
    3: ([other(23, "ä", 7), other(29, "b", 0)], []),
    5: ([], [other(50, "d", 3)]),
}
BOTH = tuple(
    epoch._replace(
        rows=[*epoch.rows, *OTHERS.get(number, ((), ()))[0]],
        early=[*epoch.early, *OTHERS.get(number, ((), ()))[1]],
    )
    for number, epoch in enumerate(EPOCHS)
)


class ProcessContract(KeyedContract):
    """Derive and say which function."""

    has_late_rows = False
    #: At least: a row without a key.
    dead_letters = 1
    function: type
    said: ClassVar[dict[str, Any]] = {}

    def node(self) -> KeyedProcess:
        failing = self.said.get("on_error") == "dead_letter"
        return process_node(
            self.function(failing), schema=written.Seen, inputs=[INPUT], **self.said
        )

    def epochs(self) -> Sequence[StepEpoch]:
        return EPOCHS

    def expected(self, epochs: Sequence[StepEpoch]) -> Outputs:
        return answer(ProcessOracle(self.node()), epochs)

    def harness(self, shards: int = 1, **how: Any) -> StepHarness:
        return super().harness(shards, stamped=True, **how)

    def agree(self, harness: StepHarness, epochs: Sequence[StepEpoch], **how: Any) -> None:
        """Rows with their times, dead letters, and what there is at the end."""
        assert_same(shown(harness.run(epochs, **how)), self.expected(self.epochs()))
        oracle = ProcessOracle(self.node())
        answer(oracle, epochs)
        assert final_state(harness) == expected_state(oracle)

    def test_state_is_the_same_after_each_epoch(self) -> None:
        harness, oracle = self.harness(2), ProcessOracle(self.node())
        for epoch in self.epochs():
            harness.epoch(epoch)
            oracle.epoch(epoch)
            assert final_state(harness) == expected_state(oracle)

    def test_sample_has_dead_letters(self) -> None:
        assert len(self.expected(self.epochs())[ERRORS]) >= self.dead_letters


class Failing(ProcessContract):
    """Derive and say which function; it fails on some rows and timers."""

    # What a failing timer was to forget stays.
    keeps_a_rest = True

    dead_letters = 4
    said: ClassVar[dict[str, Any]] = {"on_error": "dead_letter"}


class TwoInputs(ProcessContract):
    """Derive and say which function, and how it is keyed."""

    kind: str
    keys: tuple[tuple[str, ...], ...]

    def node(self) -> KeyedProcess:
        return process_node(
            self.function(), self.kind, schema=written.Seen, inputs=[INPUT, OTHER], keys=self.keys,
            **self.said,
        )  # fmt: skip

    def epochs(self) -> Sequence[StepEpoch]:
        return BOTH
