"""A best-pair join, and what it must say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headrace._graph.changes import CHANGE
from headrace._graph.join_columns import joined_columns, result_schema_of
from headrace._graph.join_nodes import Keep, TopPairJoin
from headrace._graph.nodes import ERRORS, LATE, MAIN, Port
from headrace.expressions import col
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.testing.step_harness import Outputs
from tests.oracle.joins.top import TopPairOracle

ONE = pa.schema([("id", pa.float64()), ("low", pa.int64()), ("high", pa.int64())])
OTHER = pa.schema([("of", pa.float64()), ("price", pa.int64()), ("time", pa.int64())])


def top_node(one: int = 0) -> TopPairJoin:
    """Auctions, of which the first of an id counts, and bids: the highest in time, of equal ones the earliest."""
    sides = [(ONE, ("id",)), (OTHER, ("of",))]
    (left, left_keys), (right, right_keys) = sides if one == 0 else sides[::-1]
    schemas, keys = (left, right), (left_keys, right_keys)
    columns = joined_columns(schemas, keys, "inner")
    keeps = (Keep("first"), None) if one == 0 else (None, Keep("first"))
    return TopPairJoin(
        id=0, uid="top", inputs=(Port(1), Port(2)),
        schema=result_schema_of(columns, schemas, [pa.field(CHANGE, pa.string())]),
        keys=keys, input_schemas=schemas, columns=columns, how="inner", changing=(False, False),
        keeps=keeps, ttls_us=(None, None),
        condition=(col("time") >= col("low")) & (col("time") <= col("high")),
        top=Keep("top", ("price", "time"), (True, False)), rivals_by=("id",),
    )  # fmt: skip


def oracle(one: int = 0) -> TopPairOracle:
    """What says the right answer for `top_node`."""
    return TopPairOracle(
        [("id",), ("of",)] if one == 0 else [("of",), ("id",)],
        one,
        lambda pair: pair["low"] <= pair["time"] <= pair["high"],
        lambda pair: (-pair["price"], pair["time"]),
    )


def answer(epochs: Sequence[StepEpoch], one: int = 0) -> Outputs:
    """All outputs; of dead letters only how many there are."""
    asked = oracle(one)
    said = [row for epoch in epochs for row in asked.epoch(epoch)]
    return {MAIN: said, LATE: [], ERRORS: [{} for _ in asked.errors]}


def shown(outputs: Outputs) -> Outputs:
    """Outputs in the form of `answer`."""
    return outputs | {ERRORS: [{} for _ in outputs.get(ERRORS, [])]}


def row(at: int, side: int, fields: dict[str, Any]) -> SidedRow:
    """One row."""
    return SidedRow(at, fields, side)
