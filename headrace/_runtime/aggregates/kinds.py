"""The table of kinds: which `Fold` computes which aggregate. The one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.aggregates.balances import Balance
from headrace._runtime.aggregates.collected import Collect
from headrace._runtime.aggregates.counts import Count
from headrace._runtime.aggregates.custom import Custom
from headrace._runtime.aggregates.distinct import DistinctCount, DistinctList
from headrace._runtime.aggregates.extremes import Extreme
from headrace._runtime.aggregates.fold import Fold
from headrace._runtime.aggregates.frequent import TopSketch
from headrace._runtime.aggregates.moments import Variance
from headrace._runtime.aggregates.picks import Choice, Pick
from headrace._runtime.aggregates.reducing import Reduce
from headrace._runtime.aggregates.sketches import DistinctSketch, QuantileSketch
from headrace._runtime.aggregates.sums import Average, DecimalSum, FloatSum, IntegerSum
from headrace._runtime.aggregates.words import has_words
from headrace.aggregates import Aggregate, check_retractable
from headrace.errors import EngineError, InputError

__all__ = ["Setting", "make_fold"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Where an aggregate runs."""

    uid: str
    schema: pa.Schema
    #: The key columns as they are stored.
    keys: pa.Schema
    #: Windows share panes, so accumulators of several panes are merged when one fires.
    overlapping: bool
    #: Some rows withdraw others: `Flush.weights` says which.
    weighted: bool


def make_fold(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    """What computes the result column `name`."""
    if setting.weighted:
        check_retractable(aggregate, name)
    made = _KINDS.get(aggregate.kind)
    if made is None:
        raise EngineError(f"No code computes the aggregate {aggregate} of step '{setting.uid}'.")
    return made(name, aggregate, setting)


def _column(aggregate: Aggregate) -> str:
    assert aggregate.column is not None
    return aggregate.column


def _sum(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    column = _column(aggregate)
    result = aggregate.result_type(setting.schema)

    def overflow() -> InputError:
        return InputError(
            f"Step '{setting.uid}': {aggregate} does not fit {result}; convert the field before the window,"
            f" for example with select(hr.col({column!r}).cast(float))."
        )

    total: Fold
    if pt.is_decimal(result):
        total = DecimalSum(name, column, result, overflow)
    elif pt.is_integer(result):
        total = IntegerSum(name, column, overflow)
    else:
        total = FloatSum(name, column)
    if setting.weighted:
        return Balance(name, column, total, mean=aggregate.kind == "avg", overflow=overflow)
    return total


def _average(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    return _sum(name, aggregate, setting) if setting.weighted else Average(name, _column(aggregate))


def _extreme(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    column = _column(aggregate)
    kind = setting.schema.field(column).type
    greatest = aggregate.kind == "max"
    if has_words(kind):
        return Extreme(name, column, kind, greatest=greatest)
    return Pick(name, column, setting.schema, Choice(by=column, greatest=greatest))


def _pick(choice: Choice) -> Callable[[str, Aggregate, Setting], Fold]:
    return lambda name, aggregate, setting: Pick(name, _column(aggregate), setting.schema, choice)


def _pick_by(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    greatest = aggregate.kind == "max_by"
    # By time, rows of two panes are never equal; by a column they may be.
    choice = Choice(by=aggregate.by, greatest=greatest, by_arrival=setting.overlapping)
    return Pick(name, _column(aggregate), setting.schema, choice)


def _distinct(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    column = _column(aggregate)
    kind = setting.schema.field(column).type
    if setting.overlapping:
        return DistinctList(name, column, kind)
    return DistinctCount(name, column, kind, setting.keys)


def _variance(name: str, aggregate: Aggregate, _: Setting) -> Fold:
    root = aggregate.kind == "stddev"
    return Variance(name, _column(aggregate), ddof=aggregate.ddof, root=root)


def _collect(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    column = _column(aggregate)
    kind = setting.schema.field(column).type
    return Collect(name, column, kind, overlapping=setting.overlapping)


def _quantiles(name: str, aggregate: Aggregate, _: Setting) -> Fold:
    as_list = aggregate.kind == "approx_quantiles"
    ranks = aggregate.option("ranks") if as_list else [aggregate.option("rank")]
    return QuantileSketch(name, _column(aggregate), ranks, k=aggregate.option("k"), as_list=as_list)


def _distinct_sketch(name: str, aggregate: Aggregate, _: Setting) -> Fold:
    return DistinctSketch(name, _column(aggregate), lg_k=aggregate.option("lg_k"))


def _top(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    column = _column(aggregate)
    kind = setting.schema.field(column).type
    result = aggregate.result_type(setting.schema)
    return TopSketch(
        name, column, kind, result, n=aggregate.option("n"), lg_k=aggregate.option("lg_k")
    )


def _custom(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    assert aggregate.function is not None
    return Custom(name, aggregate.function, setting.uid)


def _reduce(name: str, aggregate: Aggregate, setting: Setting) -> Fold:
    assert aggregate.reducer is not None
    return Reduce(name, aggregate.reducer, setting.schema, setting.uid)


_KINDS: Mapping[str, Callable[[str, Aggregate, Setting], Fold]] = {
    "count": lambda name, aggregate, setting: Count(
        name, aggregate.column, weighted=setting.weighted
    ),
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
    "first": _pick(Choice()),
    "last": _pick(Choice(latest=True)),
    "min_by": _pick_by,
    "max_by": _pick_by,
    "count_distinct": _distinct,
    "variance": _variance,
    "stddev": _variance,
    "collect": _collect,
    "approx_quantile": _quantiles,
    "approx_quantiles": _quantiles,
    "approx_count_distinct": _distinct_sketch,
    "approx_top": _top,
    "function": _custom,
    "reduce": _reduce,
}
