"""Stateless steps: Python functions on rows or batches, and expressions on columns.

Every step keeps the order of its rows, their timestamps and their origins. `flat_map` gives each row that
it makes the timestamp of the row that it came from. A `map_batches` function that returns another number
of rows than it got leaves rows without timestamps, because nobody can tell which belongs to which.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph import nodes
from headrace._graph.nodes import MAIN
from headrace._runtime.columns import row_objects
from headrace._runtime.expressions import evaluate
from headrace._runtime.operator import Outputs, StatelessOperator
from headrace._runtime.results import Wrong, build_batch, build_column
from headrace._runtime.rows import Rows
from headrace._runtime.usercode import calling, place
from headrace.errors import UserCodeError

__all__ = ["FilterBy", "FilterRows", "FlatMapRows", "KeyByFunction", "MapBatches"]
__all__ += ["MapRows", "Select", "Union", "as_declared", "complaint"]


class MapRows(StatelessOperator):
    """Calls the function once a row."""

    def __init__(self, node: nodes.MapRows) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        results = _call_each(self._node.uid, self._node.function, rows)
        batch = build_batch(results, self._node.schema, complaint(self._node.uid, rows))
        yield MAIN, rows.with_batch(batch)


class FlatMapRows(StatelessOperator):
    """Calls the function once a row and takes all that it returns or yields."""

    def __init__(self, node: nodes.FlatMapRows) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        results, parents = self._expand(rows)
        if not results:
            return
        wrong = complaint(self._node.uid, rows, parents)
        batch = build_batch(results, self._node.schema, wrong)
        yield MAIN, _descend(rows, parents, batch)

    def _expand(self, rows: Rows) -> tuple[list[Any], npt.NDArray[np.int64]]:
        results: list[Any] = []
        ends: list[int] = []
        function = self._node.function
        with calling(self._node.uid, rows, lambda: len(ends)):
            for row in row_objects(rows.batch):
                made = function(row)
                if isinstance(made, str | bytes | dict):
                    raise TypeError(
                        f"flat_map needs an iterable of rows, not {made!r}; return [{made!r}]"
                    )
                results.extend(made)
                ends.append(len(results))
        places = np.arange(len(results), dtype=np.int64)
        return results, np.searchsorted(np.array(ends, np.int64), places, side="right")


class FilterRows(StatelessOperator):
    """Keeps the rows for which the predicate says True."""

    def __init__(self, node: nodes.FilterRows) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        results = _call_each(self._node.uid, self._node.function, rows)
        if not set(map(type, results)) <= {bool, np.bool_}:
            index, found = next(
                (i, r) for i, r in enumerate(results) if type(r) not in (bool, np.bool_)
            )
            # A predicate without a return statement would drop every row in silence.
            raise complaint(self._node.uid, rows)(
                index,
                f"a filter must return True or False, but it returned {found!r}; use bool(...)",
            )
        kept = rows.filter(np.array(results, np.bool_))
        if len(kept):
            yield MAIN, kept


class KeyByFunction(StatelessOperator):
    """Adds the column `key`."""

    def __init__(self, node: nodes.KeyByFunction) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        results = _call_each(self._node.uid, self._node.function, rows)
        field = self._node.schema.field("key")
        key = build_column(results, field, complaint(self._node.uid, rows))
        columns = [key if n == "key" else rows.batch.column(n) for n in self._node.schema.names]
        yield MAIN, rows.with_batch(pa.RecordBatch.from_arrays(columns, schema=self._node.schema))


class MapBatches(StatelessOperator):
    """Calls the function once a batch."""

    def __init__(self, node: nodes.MapBatches) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        with calling(self._node.uid, rows):
            batch = as_declared(self._node.function(rows.batch), self._node.schema)
        if batch.num_rows == len(rows):
            yield MAIN, rows.with_batch(batch)
        elif batch.num_rows:
            yield MAIN, Rows(batch, None)


class Select(StatelessOperator):
    """Computes columns from expressions."""

    def __init__(self, node: nodes.Select) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        with calling(self._node.uid, rows):
            columns = [evaluate(expression, rows.batch) for _, expression in self._node.columns]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._node.schema)
        yield MAIN, rows.with_batch(batch)


class FilterBy(StatelessOperator):
    """Keeps the rows for which the expression is true; null counts as false."""

    def __init__(self, node: nodes.FilterBy) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        with calling(self._node.uid, rows):
            truth = pc.fill_null(evaluate(self._node.condition, rows.batch), fill_value=False)
        kept = rows.filter(truth.to_numpy(zero_copy_only=False))
        if len(kept):
            yield MAIN, kept


class Union(StatelessOperator):
    """Passes rows on: the graph brings those of all inputs here."""

    def __init__(self, node: nodes.Union) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        # Fields may differ in metadata and nullability between the inputs; behind here they do not.
        columns = [rows.batch.column(name) for name in self._node.schema.names]
        yield MAIN, rows.with_batch(pa.RecordBatch.from_arrays(columns, schema=self._node.schema))


def _descend(rows: Rows, parents: npt.NDArray[np.int64], batch: pa.RecordBatch) -> Rows:
    came = rows.origin
    return Rows(
        batch,
        None if rows.timestamps is None else rows.timestamps[parents],
        None if came is None else came.at(parents),
    )


def _call_each(uid: str, function: Callable[[Any], Any], rows: Rows) -> list[Any]:
    results: list[Any] = []
    # extend(map(...)) grows the list call by call, so its length is the index of the row that failed.
    with calling(uid, rows, lambda: len(results)):
        results.extend(map(function, row_objects(rows.batch)))
    return results


def complaint(uid: str, rows: Rows, parents: npt.NDArray[np.int64] | None = None) -> Wrong:
    """Names the step and the row, whose place is that of its result unless `parents` says another."""

    def wrong(index: int, sentence: str) -> UserCodeError:
        row = index if parents is None else int(parents[index])
        where = place(rows, row)
        at = f" (at {where})" if where else ""
        return UserCodeError(f"The result of step '{uid}' does not fit: {sentence}{at}.")

    return wrong


def as_declared(result: Any, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with its columns in the declared order."""
    if isinstance(result, pa.Table):
        result = pa.RecordBatch.from_arrays(
            [column.combine_chunks() for column in result.columns], schema=result.schema
        )
    if not isinstance(result, pa.RecordBatch):
        raise TypeError(f"a function on batches must return a RecordBatch, not {result!r}")
    problems = list(_differences(result.schema, schema))
    if problems:
        raise TypeError("; ".join(problems))
    columns = [result.column(name) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _differences(found: pa.Schema, declared: pa.Schema) -> Iterator[str]:
    for field in declared:
        if field.name not in found.names:
            yield f"the field '{field.name}' ({field.type}) is missing; there are {found.names}"
        elif found.field(field.name).type != field.type:
            kind = found.field(field.name).type
            yield f"the field '{field.name}' must be {field.type}, but it is {kind}"
    for name in found.names:
        if name not in declared.names:
            yield f"the field '{name}' is not among the declared ones: {declared.names}"
