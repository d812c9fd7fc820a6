"""The oracle of a step, from its node."""

from __future__ import annotations

from headrace._graph.nodes import CountAggregate, WindowStep
from headrace.windows import LookBack
from tests.oracle.by_row import CountOracle, LookBackOracle
from tests.oracle.windows import WindowOracle

__all__ = ["Oracle", "oracle_of"]

Oracle = WindowOracle | LookBackOracle | CountOracle


def oracle_of(node: WindowStep) -> Oracle:
    """What says the right answer for a window step, whichever engine runs it."""
    if isinstance(node.window, LookBack):
        return LookBackOracle(node.window, node.keys, node.aggregates)
    if isinstance(node, CountAggregate):
        return CountOracle(node.window, node.keys, node.aggregates)
    return WindowOracle(
        node.window,
        node.lateness_us,
        node.keys,
        node.aggregates,
        trigger=getattr(node, "trigger", None),
        accumulation=node.accumulation,
        on_late=node.on_late,
        evictor=getattr(node, "evictor", None),
        function=getattr(node, "function", None),
        weighted=node.weighted,
    )
