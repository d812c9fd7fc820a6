"""Rows that go to one of several outputs, by conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from headrace._graph import nodes
from headrace._graph.nodes import MAIN
from headrace._runtime.expressions import evaluate
from headrace._runtime.failures import Failures
from headrace._runtime.operator import Outputs, StatelessOperator
from headrace._runtime.rows import Rows
from headrace._runtime.rowwise import truths
from headrace._runtime.usercode import calling
from headrace.expressions import Expression

__all__ = ["Split"]


class Split(StatelessOperator):
    """Asks the conditions in turn, each about the rows that none before it took."""

    def __init__(self, node: nodes.Split) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        for output, condition in self._node.conditions:
            if not len(rows):
                return
            failures = Failures(self._node, rows)
            truth = self._truth(condition, rows, failures)
            if truth.any():
                yield output, rows.filter(truth)
            yield from failures.outputs()
            rows = rows.filter(~truth & failures.spared())
        if len(rows):
            yield MAIN, rows

    def _truth(
        self, condition: Expression | Callable[[Any], bool], rows: Rows, failures: Failures
    ) -> npt.NDArray[np.bool_]:
        if not isinstance(condition, Expression):
            return truths(self._node, condition, rows, failures)
        with calling(self._node.uid, rows):
            found = pc.fill_null(evaluate(condition, rows.batch), fill_value=False)
        truth: npt.NDArray[np.bool_] = found.to_numpy(zero_copy_only=False)
        return truth
