"""Each row beside what a table outside has for its key: once a distinct key of a batch, then by gathering columns.

Rows keep their order, timestamps and origins. A key with several rows in a table of files makes as many results, in the
order of the files. Null keys are never asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph import join_nodes
from headrace._graph.nodes import ERRORS, MAIN
from headrace._runtime.dead_letters import dead_letters, split_null_keys
from headrace._runtime.joins.lookup.asking import found_for
from headrace._runtime.joins.lookup.files import held
from headrace._runtime.joins.lookup.found import Found, Integers
from headrace._runtime.joins.matching import expand, portions
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Outputs, StatelessOperator, Surroundings
from headrace._runtime.plain_keys import number_keys, plain_key
from headrace._runtime.rows import Rows
from headrace.lookups import FileTable

__all__ = ["LookupJoin"]


class LookupJoin(StatelessOperator):
    """Asks the table and puts rows together."""

    def __init__(self, node: join_nodes.LookupJoin) -> None:
        self._node = node
        self._metrics: Metrics | None = None
        self._left_out = 0

    def enter(self, around: Surroundings) -> None:
        self._metrics = around.metrics

    def left_out(self) -> int:
        """Rows without a partner, in an inner join."""
        rows, self._left_out = self._left_out, 0
        return rows

    def process(self, rows: Rows) -> Outputs:
        if self._node.how == "inner":
            rows, dead = split_null_keys(rows, self._node.uid, self._node.keys)
            if dead is not None:
                yield ERRORS, dead
        if not len(rows):
            return
        codes, found = self._find(rows)
        if found.failed:
            # Before anything is gathered: these have no result.
            failed = np.isin(codes, np.array(list(found.failed), np.int64))
            causes = [found.failed[code] for code in codes[failed].tolist()]
            told = [cause for cause, _ in causes], [trace for _, trace in causes]
            yield ERRORS, dead_letters(rows.filter(failed), self._node.uid, *told)
            rows, codes = rows.filter(~failed), codes[~failed]
        for joined in self._joined(rows, codes, found):
            yield MAIN, joined

    def _find(self, rows: Rows) -> tuple[Integers, Found]:
        """The number of each row's key, -1 if it is null, and what the table has for each number."""
        columns = [plain_key(rows.batch.column(name)) for name in self._node.keys]
        valid = _all_valid(columns)
        if valid is not None:
            columns = [column.filter(pa.array(valid)) for column in columns]
        numbers, firsts = number_keys(columns)
        keys = [column.take(pa.array(firsts)) for column in columns]
        codes = numbers
        if valid is not None:
            codes = np.full(len(rows), -1, np.int64)
            codes[valid] = numbers
            firsts = np.flatnonzero(valid)[firsts]
            if self._metrics is not None:
                self._metrics.counter("null_keys").inc(len(rows) - len(numbers))
        table = self._node.table
        if isinstance(table, FileTable):
            return codes, held(table, self._node.table_schema).index().find(keys)
        return codes, found_for(self._node, keys, rows, firsts.tolist())

    def _joined(self, rows: Rows, codes: Integers, found: Found) -> Iterator[Rows]:
        """The results, a bounded number of them at a time."""
        starts, sizes = _of_rows(found.starts, codes, -1), _of_rows(found.counts, codes, 0)
        alone = sizes == 0
        starts[alone] = -1
        if self._node.how == "inner":
            self._left_out += int(alone.sum())
        else:
            sizes[alone] = 1
        if (sizes == 1).all():
            if len(rows):
                yield self._pairs(rows, None, starts, found.rows)
            return
        for part in portions(sizes):
            parents, at = expand(starts[part], sizes[part])
            yield self._pairs(rows, parents + part.start, at, found.rows)

    def _pairs(
        self, rows: Rows, parents: Integers | None, at: Integers, table: pa.RecordBatch
    ) -> Rows:
        """Rows of the stream beside those of the table at these places; nothing at -1."""
        batch = rows.batch if parents is None else rows.batch.take(pa.array(parents))
        missing = at < 0
        places = pa.array(at, mask=missing) if missing.any() else pa.array(at)
        arrays, fields = [], []
        for column, field in zip(self._node.columns, self._node.schema, strict=True):
            side, name = column.origins[0]
            if side == 0 and name not in batch.schema.names:
                continue  # nobody looks at it, so its source does not make it
            arrays.append(batch.column(name) if side == 0 else table.column(name).take(places))
            fields.append(field)
        made = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
        return rows.descend(made, parents)


def _all_valid(columns: list[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """The rows without a null in their key, as a mask; None if all are."""
    valid: npt.NDArray[np.bool_] | None = None
    for column in columns:
        if column.null_count:
            mine = column.is_valid().to_numpy(zero_copy_only=False)
            valid = mine if valid is None else valid & mine
    return valid


def _of_rows(numbers: Integers, codes: Integers, none: int) -> Integers:
    """What each row's key has; `none` where the key is null."""
    return np.append(numbers, none)[codes]
