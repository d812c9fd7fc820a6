"""Rows that wait until the watermark has passed them, and the order in which they come then.

That order is (timestamp, input, source, partition, offset, arrival): nothing in it depends on where epochs were cut, as
long as rows come straight from sources. Behind another shuffle rows of one time come as they arrived.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.arrivals import ARRIVALS, Arrivals
from headrace._runtime.operator import HASH
from headrace._runtime.process.feeder import OFFSET, PARTITION, SOURCE, sent_columns
from headrace._runtime.process.timing.slices import LEVELS, Slices
from headrace._runtime.state import ShardState, TableSpec, ValueSpec
from headrace._runtime.unfolded import TIMESTAMP, join_batches
from headrace.keys import extend_hashes

__all__ = ["Waiting", "order_of", "waiting_tables"]

Integers = npt.NDArray[np.int64]

_TIME = pa.field("__time", pa.int64())
_NUMBER = pa.field("__number", pa.int64())
_ROW = "row"


def waiting_tables(node: KeyedProcess) -> tuple[TableSpec, ...]:
    """The tables of the rows that wait; none if they come as they arrive."""
    if not node.ordered:
        return ()
    tables = [
        TableSpec(
            f"{_name(side)}:{level}",
            pa.schema([_TIME, _NUMBER]),
            (ValueSpec(_ROW, pa.struct(list(_fed(node, side)))),),
        )
        for side in range(len(node.inputs))
        for level in range(LEVELS)
    ]
    return (ARRIVALS, *tables)


class Waiting:
    """The rows of one input that wait in one shard."""

    def __init__(self, node: KeyedProcess, side: int, state: ShardState) -> None:
        self._schema = _fed(node, side)
        self._slices = Slices(_name(side), state)
        self._arrivals = Arrivals(state)

    def put(self, batch: pa.RecordBatch, now: int) -> None:
        """Keep rows, all with timestamps after `now`."""
        if not batch.num_rows:
            return
        keys: npt.NDArray[np.uint64] = batch.column(HASH).to_numpy()
        numbers = self._arrivals.count(keys) + np.arange(batch.num_rows)
        order = np.argsort(batch.column(TIMESTAMP).to_numpy(), kind="stable")
        batch, keys, numbers = batch.take(pa.array(order)), keys[order], numbers[order]
        times: Integers = batch.column(TIMESTAMP).to_numpy()
        hashes = extend_hashes(keys, [pa.array(times), pa.array(numbers)])
        arrays = [batch.column(field.name) for field in self._schema]
        rows = pa.StructArray.from_arrays(arrays, fields=list(self._schema))
        for table, start, stop in self._slices.choose(times, now):
            own = [pa.array(times[start:stop]), pa.array(numbers[start:stop])]
            slots, _ = table.upsert(hashes[start:stop], own)
            table.put(_ROW, slots, rows.slice(start, stop - start))

    def due(self, before: int, reached: int) -> pa.RecordBatch | None:
        """The rows that the watermark passes now, with the number of their arrival; None if there are none."""
        found = []
        for table in self._slices.until(reached) if reached > before else ():
            slots = table.live()
            times = table.key(0, slots).to_numpy()
            slots = slots[(times > before) & (times <= reached)]
            if len(slots):
                rows = table.arrow(_ROW, slots).flatten()
                schema = self._schema.append(_NUMBER)
                found.append(
                    pa.RecordBatch.from_arrays([*rows, table.key(1, slots)], schema=schema)
                )
        return join_batches(found) if found else None

    def next(self, reached: int) -> int | None:
        """The timestamp of the row that comes next."""
        firsts = []
        for tables in self._slices.levels():
            for table in tables:
                times = table.key(0, table.live()).to_numpy()
                times = times[times > reached]
                if len(times):
                    firsts.append(int(times.min()))
                    break
        return min(firsts, default=None)

    def forget(self, reached: int) -> None:
        """Drop what has come."""
        self._slices.forget(reached)

    def is_over(self) -> bool:
        """Whether nothing is kept, not even what has come."""
        return self._slices.are_gone()


def order_of(batches: dict[int, pa.RecordBatch]) -> tuple[Integers, Integers]:
    """The order in which the due rows of all inputs come: the input of each, and its place there."""
    sides = np.concatenate([np.full(batch.num_rows, side) for side, batch in batches.items()])
    places = np.concatenate([np.arange(batch.num_rows) for batch in batches.values()])

    def joined(name: str) -> pa.Array:
        return pa.concat_arrays([batch.column(name) for batch in batches.values()])

    order = np.lexsort(
        (
            joined(_NUMBER.name).to_numpy(),
            joined(OFFSET).fill_null(0).to_numpy(),
            _ranks(joined(PARTITION)),
            _ranks(joined(SOURCE)),
            sides,
            joined(TIMESTAMP).to_numpy(),
        )
    )
    return sides[order], places[order]


def _name(side: int) -> str:
    return f"waiting {side}"


def _fed(node: KeyedProcess, side: int) -> pa.Schema:
    own = [pa.field(TIMESTAMP, pa.int64()), pa.field(HASH, pa.uint64())]
    return pa.schema([*sent_columns(node, side), *own])


def _ranks(names: pa.Array) -> Integers:
    """For each name its place among all, in their order."""
    encoded = names.fill_null("").dictionary_encode()
    known = encoded.dictionary.to_pylist()
    ranks = np.empty(len(known), np.int64)
    ranks[sorted(range(len(known)), key=known.__getitem__)] = np.arange(len(known))
    found: Integers = ranks[encoded.indices.to_numpy()]
    return found
