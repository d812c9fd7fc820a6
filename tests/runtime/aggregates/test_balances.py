"""Rows that withdraw others leave what a recomputation over the rest would give."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import aggregates as agg
from headrace.aggregates import Aggregate, check_retractable
from headrace.approximate import approx_top
from headrace.errors import BuildError, InputError
from tests.runtime.aggregates.driving import compute, fold_of

KEYS = 3
KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**40), 2**40),
    pa.uint64(): st.integers(0, 2**40),
    pa.float64(): st.sampled_from([0.5, -2.25, 1e6, -0.0]),
    pa.decimal128(12, 2): st.decimals(-1000, 1000, places=2),
}
AGGREGATES = [agg.count(), agg.count("value"), agg.sum("value"), agg.avg("value")]

#: A key, a value, and whether the row is withdrawn later.
Row = tuple[int, Any, bool]


def batch(rows: list[tuple[int, Any, str]], kind: pa.DataType) -> pa.RecordBatch:
    keys, values, changes = zip(*rows, strict=True)
    return pa.record_batch(
        {"key": pa.array(keys, pa.int64()), "value": pa.array(values, kind), "change": changes}
    )


def recomputed(aggregate: Aggregate, rows: list[Row]) -> list[Any]:
    return [_of([value for key, value, gone in rows if key == k and not gone], aggregate)
            for k in range(KEYS)]  # fmt: skip


def _of(values: list[Any], aggregate: Aggregate) -> Any:
    if aggregate.column is None:
        return len(values)
    present = [value for value in values if value is not None]
    if aggregate.kind == "count":
        return len(present)
    if not present:
        return None
    total = sum(present[1:], present[0])
    return total if aggregate.kind == "sum" else float(total) / len(present)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(seed=st.integers(0, 2**32), drawing=st.data())
def test_what_was_withdrawn_was_never_there(
    kind: pa.DataType, aggregate: Aggregate, seed: int, drawing: st.DataObject
) -> None:
    values = st.none() | KINDS[kind]
    rows: list[Row] = drawing.draw(
        st.lists(
            st.tuples(st.integers(0, KEYS - 1), values, st.booleans()), min_size=1, max_size=20
        )
    )
    shuffled = random.Random(seed)
    added = [(key, value, shuffled.choice(["+I", "+U"])) for key, value, _ in rows]
    taken = [(key, value, shuffled.choice(["-U", "-D"])) for key, value, gone in rows if gone]
    # A row may even arrive behind the one that withdraws it.
    stream = shuffled.sample(added + taken, len(added) + len(taken))
    cut = shuffled.randint(1, len(stream))
    folds = [batch(part, kind) for part in (stream[:cut], stream[cut:]) if part]
    panes = [folds] if shuffled.random() < 0.5 else [[fold] for fold in folds]
    found = compute(aggregate, panes, keys=KEYS, weighted=True).to_pylist()
    assert found == [
        value if value is None else pytest.approx(value) if isinstance(value, float) else value
        for value in recomputed(aggregate, rows)
    ]


def test_the_result_has_the_type_that_it_has_without_withdrawals() -> None:
    for kind in KINDS:
        rows = batch([(0, None, "+I")], kind)
        for aggregate in AGGREGATES:
            found = compute(aggregate, [[rows]], keys=1, weighted=True)
            assert found.type == aggregate.result_type(rows.schema)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_the_largest_integers_are_added_exactly(value: int) -> None:
    rows = batch(
        [(0, value, "+I"), (0, value + (1 if value < 0 else 0), "-U"), (0, 5, "+U")], pa.int64()
    )
    found = compute(agg.sum("value"), [[rows]], keys=1, weighted=True)
    assert found.to_pylist() == [5 + (-1 if value < 0 else 0)]


@pytest.mark.parametrize(
    ("kind", "value", "change"),
    [
        (pa.uint64(), 2**63, "+I"),
        (pa.int64(), -(2**63), "-U"),
        (pa.decimal128(38, 0), Decimal(6 * 10**37), "-U"),
    ],
)
def test_a_total_that_does_not_fit_is_an_error(kind: pa.DataType, value: Any, change: str) -> None:
    with pytest.raises(InputError, match=r"'per-key': sum\('value'\) does not fit"):
        compute(agg.sum("value"), [[batch([(0, value, change)] * 2, kind)]], keys=1, weighted=True)


REFUSED = [
    agg.min("value"),
    agg.last("value"),
    agg.max_by("value", "key"),
    agg.count_distinct("value"),
    agg.variance("value"),
    agg.collect("value"),
    agg.reduce_of(lambda a, _: a),
    approx_top("value"),
]


@pytest.mark.parametrize("aggregate", REFUSED, ids=str)
def test_what_cannot_forget_a_row_is_refused_before_the_job_starts(aggregate: Aggregate) -> None:
    with pytest.raises(BuildError, match=r"out = .* hr.count, hr.sum, hr.avg can"):
        check_retractable(aggregate, "out")
    with pytest.raises(BuildError, match="cannot take back"):
        fold_of(aggregate, batch([(0, 1, "+I")], pa.int64()).schema, weighted=True)


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=str)
def test_what_only_adds_is_not_refused(aggregate: Aggregate) -> None:
    check_retractable(aggregate, "out")
