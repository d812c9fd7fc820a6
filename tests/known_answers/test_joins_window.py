"""The oracle of window joins knows the answers of the golden cases that Flink's documentation gives."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Hopping, Tumbling, WindowAssigner
from tests.cases.harness.case import Case
from tests.cases.harness.comparing import differences
from tests.cases.harness.feeds import timestamps
from tests.cases.joins import window as cases
from tests.oracle.joins.window import WindowJoinOracle

FIVE = Tumbling(timedelta(minutes=5))
MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("case", "window", "key", "how"),
    [
        (cases.INNER, FIVE, "num", "inner"),
        (cases.LEFT, FIVE, "num", "left"),
        (cases.RIGHT, FIVE, "num", "right"),
        (cases.FULL, FIVE, "num", "full"),
        (cases.SEMI, FIVE, "num", "semi"),
        (cases.ANTI, FIVE, "num", "anti"),
        (cases.TUMBLING, Tumbling(2 * MS), "key", "inner"),
        (cases.SLIDING, Hopping(2 * MS, MS), "key", "inner"),
    ],
)
def test_the_oracle_knows_the_answer(
    case: Case, window: WindowAssigner, key: str, how: str
) -> None:
    streams = list(case.streams.values())
    columns = [list(stream.schema) for stream in streams]
    oracle = WindowJoinOracle(window, [(key,), (key,)], columns, how=how)
    rows = [
        SidedRow(at, row, side)
        for side, stream in enumerate(streams)
        for at, row in zip(timestamps(stream.rows, stream.time), stream.rows, strict=True)
    ]
    answer = oracle.epoch(StepEpoch(NO_WATERMARK, END_OF_TIME, (), rows))
    assert not differences(case, {"main": answer.ticked}, fewest=True)
