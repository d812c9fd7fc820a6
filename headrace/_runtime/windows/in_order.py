"""What computes the aggregates of windows whose rows are kept in the order of their arrival."""

from __future__ import annotations

from headrace._graph.nodes import WindowStep
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.kinds import Setting, make_fold
from headrace._runtime.plain_keys import plain_keys_schema
from headrace._runtime.unfolded import plain_columns
from headrace.aggregates import Aggregate

__all__ = ["folds_in_order"]


def folds_in_order(node: WindowStep) -> tuple[Fold, ...]:
    """What computes the aggregates where parts are merged in the order in which their rows arrived.

    Then no order need be kept beside them. Values that count once are kept as lists, since members of a table
    cannot be told apart by window.
    """
    keys = plain_keys_schema(node.keys, node.input_schema)
    columns = plain_columns(node.input_schema, node.input_schema.names)

    def setting(aggregate: Aggregate) -> Setting:
        overlapping = aggregate.kind == "count_distinct"
        return Setting(node.uid, columns, keys, overlapping=overlapping, weighted=node.weighted)

    return tuple(make_fold(name, a, setting(a)) for name, a in node.aggregates)
