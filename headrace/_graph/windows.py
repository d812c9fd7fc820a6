"""From what was said of a window to the node that does it: its aggregates, its columns, its engine."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace._graph.nodes import (
    Accumulation,
    CountAggregate,
    LookBackAggregate,
    SessionAggregate,
    WindowAggregate,
    WindowProcess,
    WindowStep,
)
from headrace._graph.validate import check_columns
from headrace.aggregates import Aggregate, as_aggregate
from headrace.errors import BuildError
from headrace.evictors import Evictor
from headrace.functions import AggregateFunction, accumulator_type
from headrace.triggers import EarlyLate, Trigger
from headrace.triggers.timed import EventTime
from headrace.windows import Assigner, Count, LookBack, Session, Window

__all__ = ["aggregate_node", "check_aggregates", "result_fields"]

_INSTANT = pa.timestamp("us", tz="UTC")


def aggregate_node(
    window: Assigner,
    trigger: Trigger | None,
    accumulation: Accumulation,
    evictor: Evictor | None,
    *,
    late: bool = True,
) -> tuple[type[WindowStep], dict[str, Any]]:
    """The kind of node that aggregates so, and what it needs to know beyond what every window knows.

    What fires at its end, whole, is folded in columns; so are early firings of aligned windows. The rest goes row by
    row. `late`: rows may come behind the end of a window and fire it again.
    """
    trigger = None if _is_default(trigger) else trigger
    plain = trigger is None and accumulation == "accumulating" and evictor is None
    if isinstance(window, LookBack):
        if not plain:
            raise BuildError(
                "A look-back gives one result for each row, when the watermark has passed it; it takes no"
                " trigger, evictor or accumulation."
            )
        return LookBackAggregate, {}
    if (
        isinstance(window, Window)
        and evictor is None
        and _by_pane(window, trigger, accumulation, late)
    ):
        return WindowAggregate, {"trigger": trigger}
    if plain and isinstance(window, Session):
        return SessionAggregate, {}
    if plain and isinstance(window, Count):
        return CountAggregate, {}
    return WindowProcess, {"trigger": trigger, "evictor": evictor}


def _is_default(trigger: Trigger | None) -> bool:
    """At the end, then once an epoch for what late rows changed."""
    if isinstance(trigger, EarlyLate):
        never_early = trigger.early_every_us is None and trigger.early_count is None
        return never_early and trigger.late_each
    return trigger is None or isinstance(trigger, EventTime)


def _by_pane(
    window: Window, trigger: Trigger | None, accumulation: Accumulation, late: bool
) -> bool:
    """Whether panes can do it: a pane is shared by windows, so it cannot be emptied for one of them."""
    if trigger is not None and not (
        isinstance(trigger, EarlyLate) and trigger.early_every_us is not None and trigger.late_each
    ):
        return False
    fires_once = trigger is None and not late
    return accumulation != "discarding" or window.panes == 1 or fires_once


def result_fields(
    keys: Sequence[str],
    window: Assigner,
    accumulation: Accumulation,
    aggregates: Mapping[str, Aggregate],
    schema: pa.Schema,
) -> pa.Schema:
    """The columns of the results of aggregates."""
    results = [pa.field(name, a.result_type(schema)) for name, a in aggregates.items()]
    if isinstance(window, LookBack):
        return pa.schema([*schema, *results]) if schema.names else pa.schema(results)
    added = [pa.field("pane", pa.string()), pa.field("firing", pa.int64())]
    if window.timed:
        bounds = [pa.field("window_start", _INSTANT), pa.field("window_end", _INSTANT)]
        added = [*bounds, *added]
    if accumulation == "retracting":
        added.append(pa.field(CHANGE, pa.string()))
    names = [field.name for field in added]
    if hidden := [key for key in keys if key in names]:
        raise BuildError(
            f"The key '{hidden[0]}' would have the name of a column that every window adds"
            f" ({', '.join(names)}); rename it first: select(..., other=hr.col('{hidden[0]}'))."
        )
    fields = [*(schema.field(key) for key in keys), *added, *results]
    return check_columns(pa.schema(fields), "The result of aggregate")


def check_aggregates(given: Mapping[str, Any], taken: Iterable[str]) -> dict[str, Aggregate]:
    """The aggregates, if there are any and none has the name of another column of the result."""
    taken = list(taken)
    if not given:
        raise BuildError(
            "aggregate needs at least one result, for example aggregate(bids=hr.count())."
        )
    for name in given:
        if name in taken:
            raise BuildError(
                f"aggregate({name}=...) would hide the column '{name}' of the result; choose a"
                f" name other than {', '.join(taken)}."
            )
    return {name: _checked(value, name) for name, value in given.items()}


def _checked(value: Any, name: str) -> Aggregate:
    if callable(value) and not isinstance(value, type | AggregateFunction):
        raise BuildError(
            f"aggregate({name}=...) got the function {getattr(value, '__name__', value)!r}; call it, as"
            " in hr.count() or hr.sum('price'), or derive from hr.AggregateFunction."
        )
    aggregate = as_aggregate(value, name)
    if aggregate.function is not None:
        accumulator_type(aggregate.function)
    return aggregate
