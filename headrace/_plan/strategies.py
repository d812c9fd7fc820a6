"""Checks of watermark strategies that need columns, the source or other sources. They raise on the user's line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from headrace._graph.callables import check_row_function
from headrace._graph.nodes import Node, ReadSource
from headrace._runtime.expressions import result_type
from headrace.endpoints import Source
from headrace.errors import BuildError, SchemaError
from headrace.expressions import Expression
from headrace.schema import require_field, return_type
from headrace.watermarks import WatermarkStrategy

__all__ = ["check_assigned_strategy", "check_source_strategy"]


def check_source_strategy(strategy: Any, source: Source, nodes: Iterable[Node]) -> None:
    """Whether the strategy fits a source, beside the sources that the job has already."""
    if not isinstance(strategy, WatermarkStrategy):
        raise BuildError(f"watermarks= takes a headrace.WatermarkStrategy, not {strategy!r}.")
    if strategy.record_timestamps:
        _check_records(source)
    else:
        _check_timestamps(strategy, source.schema)
    for node in nodes:
        if isinstance(node, ReadSource) and node.strategy is not None:
            _check_drift(strategy, node.strategy, node)


def check_assigned_strategy(strategy: Any, schema: pa.Schema) -> None:
    """Whether the strategy fits rows in the middle of a graph."""
    what = "assign_timestamps_and_watermarks"
    if not isinstance(strategy, WatermarkStrategy):
        raise BuildError(f"{what} takes a headrace.WatermarkStrategy, not {strategy!r}.")
    if strategy.alignment is not None:
        raise BuildError(
            f"{what} cannot align: only a source can be read less. Write with_alignment(...) in the"
            " watermarks= of from_source."
        )
    if strategy.kind == "generator":
        raise BuildError(
            f"{what} takes no generator: it would have to see the rows of a source partition in order,"
            " which only the source can promise. Use for_generator(...) in the watermarks= of from_source."
        )
    if strategy.record_timestamps:
        raise BuildError(
            f"{what} does not know the records' own timestamps, only the source does. Use"
            " with_record_timestamps() in the watermarks= of from_source, or name a column here."
        )
    _check_timestamps(strategy, schema)


def _check_records(source: Source) -> None:
    if not source.has_record_timestamps:
        raise BuildError(
            f"The source {type(source).__name__} has no timestamps beside its columns, so"
            " with_record_timestamps() cannot be used; name a column with with_timestamps(...), or use"
            " WatermarkStrategy.ingestion_time()."
        )


def _check_drift(strategy: WatermarkStrategy, other: WatermarkStrategy, node: ReadSource) -> None:
    mine, theirs = strategy.alignment, other.alignment
    if mine is None or theirs is None or mine.group != theirs.group:
        return
    if mine.drift_us != theirs.drift_us:
        raise BuildError(
            f"The group '{mine.group}' has two drifts: {mine.drift_us / 1e6:g} s here and"
            f" {theirs.drift_us / 1e6:g} s of the source '{node.uid}' ({node.where}); give all its"
            " sources the same max_drift."
        )


def _check_timestamps(strategy: WatermarkStrategy, schema: pa.Schema) -> None:
    wanted = strategy.timestamps
    if strategy.kind == "ingestion":
        return
    if wanted is None:
        fit = [f.name for f in schema if pa.types.is_timestamp(f.type) and f.type.tz is not None]
        raise BuildError(
            "The watermark strategy does not say where timestamps are; add .with_timestamps(...)."
            f" Columns that fit: {', '.join(fit) or 'none; compute one with a function'}."
        )
    if isinstance(wanted, str):
        kind = require_field(schema, wanted, what="with_timestamps").type
    elif isinstance(wanted, Expression):
        kind = result_type(wanted, schema)
    else:
        check_row_function(wanted, "with_timestamps", schema)
        kind = return_type(wanted)
    _check_instant(kind, wanted)


def _check_instant(kind: pa.DataType | None, wanted: Any) -> None:
    if kind is None:
        return
    if not pa.types.is_timestamp(kind):
        raise SchemaError(f"with_timestamps needs points in time, but {wanted!r} is {kind}.")
    if kind.tz is None:
        raise SchemaError(
            f"with_timestamps needs points in time with a time zone, but {wanted!r} is {kind}: a naive"
            " timestamp means another instant on every machine. Declare it as timestamp[us, tz=UTC]"
            " (datetime in a dataclass)."
        )
