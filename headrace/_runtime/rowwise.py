"""Stateless steps: Python functions on rows or batches, and expressions on columns.

Every step keeps the order of its rows, their timestamps and their origins. `flat_map` gives each row that
it makes the timestamp of the row that it came from. A `map_batches` function that returns another number
of rows than it got leaves rows without timestamps, because nobody can tell which belongs to which.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph import nodes
from headrace._graph.nodes import MAIN
from headrace._runtime.columns import row_objects
from headrace._runtime.detached import detached
from headrace._runtime.expressions import evaluate
from headrace._runtime.failures import Failures, Fitted, Made, call_each
from headrace._runtime.operator import Outputs, StatelessOperator
from headrace._runtime.results import Wrong, build_batch, build_column
from headrace._runtime.rows import Rows
from headrace._runtime.usercode import OURS, calling
from headrace._runtime.watchdog import IDLE, watching

__all__ = ["FilterBy", "FilterRows", "FlatMapRows", "KeyByFunction", "MapBatches"]
__all__ += ["MapRows", "Select", "Union", "as_declared", "built", "descendants", "truths"]


class MapRows(StatelessOperator):
    """Calls the function once a row."""

    def __init__(self, node: nodes.MapRows) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        failures = Failures(self._node, rows)
        results = call_each(self._node, self._node.function, rows, failures, keep=detached)
        made = Made(results, None, partial(built, self._node.schema))
        yield from descendants(rows, failures.fit({MAIN: made}))
        yield from failures.outputs()


class FlatMapRows(StatelessOperator):
    """Calls the function once a row and takes all that it returns or yields."""

    def __init__(self, node: nodes.FlatMapRows) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        failures = Failures(self._node, rows)
        results, parents = self._expand(rows, failures)
        made = Made(results, parents, partial(built, self._node.schema))
        yield from descendants(rows, failures.fit({MAIN: made}))
        yield from failures.outputs()

    def _expand(self, rows: Rows, failures: Failures) -> tuple[list[Any], npt.NDArray[np.int64]]:
        results: list[Any] = []
        ends: list[int] = []
        function = self._node.function
        with watching(self._node.limit_us) as watch:
            for place, row in enumerate(row_objects(rows.batch)):
                watch.call = place
                try:
                    results.extend(map(detached, _iterable(function(row))))
                except BaseException as error:  # noqa: BLE001 - user code may raise anything
                    watch.call = IDLE
                    del results[ends[-1] if ends else 0 :]
                    failures.add(place, error)
                ends.append(len(results))
        places = np.arange(len(results), dtype=np.int64)
        return results, np.searchsorted(np.array(ends, np.int64), places, side="right")


class FilterRows(StatelessOperator):
    """Keeps the rows for which the predicate says True."""

    def __init__(self, node: nodes.FilterRows) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        failures = Failures(self._node, rows)
        truth = truths(self._node, self._node.function, rows, failures)
        kept = rows.filter(truth)
        if len(kept):
            yield MAIN, kept
        yield from failures.outputs()


class KeyByFunction(StatelessOperator):
    """Adds the column `key`."""

    def __init__(self, node: nodes.KeyByFunction) -> None:
        self._node = node
        self._key = pa.schema([node.schema.field("key")])

    def process(self, rows: Rows) -> Outputs:
        failures = Failures(self._node, rows)
        results = call_each(self._node, self._node.function, rows, failures)
        found = failures.fit({MAIN: Made(results, None, self._build)})[MAIN]
        kept = rows if found.parents is None else rows.take(found.parents)
        if len(kept):
            schema = self._node.schema
            named = {"key": found.batch.column("key")}
            columns = [named[n] if n in named else kept.batch.column(n) for n in schema.names]
            yield MAIN, kept.with_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        yield from failures.outputs()

    def _build(self, results: Sequence[Any], wrong: Wrong) -> pa.RecordBatch:
        key = build_column(results, self._key.field("key"), wrong)
        return pa.RecordBatch.from_arrays([key], schema=self._key)


class MapBatches(StatelessOperator):
    """Calls the function once a batch.

    Where rows may become dead letters it is called again, on halves of a batch on which it fails, until the rows are
    found that it cannot take.
    """

    def __init__(self, node: nodes.MapBatches) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        failures = Failures(self._node, rows)
        whole = not failures.dead_letter or len(rows) == 1
        batch = None
        try:
            batch = self._call(rows)
        except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
            if whole or isinstance(error, OURS):
                failures.add(0 if failures.dead_letter else None, error)
        if batch is None and not whole:
            for half in np.array_split(np.arange(len(rows)), 2):
                yield from self.process(rows.take(half))
        elif batch is not None and batch.num_rows:
            same = batch.num_rows == len(rows)
            yield MAIN, rows.with_batch(batch) if same else Rows(batch, None)
        yield from failures.outputs()

    def _call(self, rows: Rows) -> pa.RecordBatch:
        with watching(self._node.limit_us) as watch:
            watch.call = 0
            return as_declared(self._node.function(rows.batch), self._node.schema)


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
        mask = truth.to_numpy(zero_copy_only=False)
        if mask.all():
            yield MAIN, rows
        elif mask.any():
            yield MAIN, self._kept(rows, mask)

    def _kept(self, rows: Rows, mask: npt.NDArray[np.bool_]) -> Rows:
        """Columns that nobody looks at are nulls: to filter wide rows costs more than most of what follows."""
        taken, names = self._node.taken, rows.batch.schema.names
        if taken is None or taken.issuperset(names):
            return rows.filter(mask)
        own = [name for name in names if name in taken]
        kept = rows.with_batch(rows.batch.select(own)).filter(mask)
        found = dict(zip(own, kept.batch.columns, strict=True))
        columns = [
            found[field.name] if field.name in found else pa.nulls(len(kept), field.type)
            for field in rows.batch.schema
        ]
        return kept.with_batch(pa.RecordBatch.from_arrays(columns, schema=rows.batch.schema))


class Union(StatelessOperator):
    """Passes rows on: the graph brings those of all inputs here."""

    def __init__(self, node: nodes.Union) -> None:
        self._node = node

    def process(self, rows: Rows) -> Outputs:
        # Fields may differ in metadata and nullability between the inputs; behind here they do not.
        columns = [rows.batch.column(name) for name in self._node.schema.names]
        yield MAIN, rows.with_batch(pa.RecordBatch.from_arrays(columns, schema=self._node.schema))


def truths(
    node: nodes.CodeStep, predicate: Callable[[Any], bool], rows: Rows, failures: Failures
) -> npt.NDArray[np.bool_]:
    """What a predicate says of each row; False of those on which it failed."""
    made = Made(call_each(node, predicate, rows, failures), None, _build_truths)
    found = failures.fit({MAIN: made})[MAIN]
    said: npt.NDArray[np.bool_] = found.batch.column(0).to_numpy(zero_copy_only=False)
    if found.parents is None:
        return said
    truth = np.zeros(len(rows), np.bool_)
    truth[found.parents] = said
    return truth


def descendants(rows: Rows, made: Mapping[str, Fitted]) -> Outputs:
    """What was made of rows, with their timestamps and origins."""
    for output, found in made.items():
        if found.batch.num_rows:
            yield output, rows.descend(found.batch, found.parents)


def _iterable(made: Any) -> Any:
    if isinstance(made, str | bytes | dict):
        raise TypeError(f"flat_map needs an iterable of rows, not {made!r}; return [{made!r}]")
    return made


def built(schema: pa.Schema, results: Sequence[Any], wrong: Wrong) -> pa.RecordBatch:
    """Results as columns, the way `Made` wants it."""
    return build_batch(results, schema, wrong)


def _build_truths(results: Sequence[Any], wrong: Wrong) -> pa.RecordBatch:
    if not set(map(type, results)) <= {bool, np.bool_}:
        index, found = next(
            (i, r) for i, r in enumerate(results) if type(r) not in (bool, np.bool_)
        )
        # A predicate without a return statement would drop every row in silence.
        raise wrong(
            index,
            f"a condition must return True or False, but it returned {found!r}; use bool(...)",
        )
    return pa.RecordBatch.from_arrays([pa.array(np.array(results, np.bool_))], names=["truth"])


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
