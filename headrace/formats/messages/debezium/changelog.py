"""Change events to change rows: what every Debezium format does behind its parser.

An event has an `op`, the row `before` it and the row `after` it. Rows come in the order of the events, and of an update
the withdrawal first:

    c r   +I of after           d   -D of before
    u     -U of before, +U of after; without a before (no full replica identity) only +U of after
    m     nothing (a logical message)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace.errors import BuildError, SinkRefused
from headrace.formats.lines import Int64s

__all__ = ["NO_OP", "ChangeRows", "change_rows", "ops_of", "with_change"]

_KINDS = pa.array(["+I", "-U", "+U", "-D"])
#: How rows are written.
_OPS = {"+I": "c", "+U": "u", "-U": "d", "-D": "d"}
_INSERT, _WITHDRAW, _REPLACE, _DELETE = range(4)
NO_OP = (
    "the message has no 'op', so it is no Debezium change event (is it unwrapped by a transform?)"
)
_TRUNCATED = (
    "the table was truncated (op 't'), which no change row can say; delete the rows instead"
)
_NO_AFTER = "the change event has no 'after'"
_NO_BEFORE = "the row was deleted, but the change event has no 'before'; set REPLICA IDENTITY FULL on the table"


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """The rows of change events as they were parsed, the event of each, and the events that are bad."""

    columns: list[pa.Array]
    change: pa.Array
    places: Int64s
    bad: list[tuple[int, str]]


def with_change(declared: pa.Schema, name: str) -> pa.Schema:
    """The declared columns and `change`."""
    if CHANGE in declared.names:
        raise BuildError(
            f"format {name!r} adds the column {CHANGE!r} itself; leave it out of schema="
        )
    return declared.append(pa.field(CHANGE, pa.string()))


def ops_of(batch: pa.RecordBatch) -> pa.Array:
    """The `op` of each row; rows without `change` are inserts."""
    if CHANGE not in batch.schema.names:
        return pa.array(["c"] * len(batch), pa.string())
    codes = pc.index_in(batch.column(CHANGE), pa.array(list(_OPS)))
    if codes.null_count:
        raise SinkRefused(f"column {CHANGE!r} of a change event must be one of {', '.join(_OPS)}")
    return pa.array(list(_OPS.values())).take(codes)


def change_rows(ops: pa.Array, before: pa.StructArray, after: pa.StructArray) -> ChangeRows:
    """What the events say, as many at once as there are."""
    inserted, updated = _are(ops, ["c", "r"]), _are(ops, ["u"])
    deleted, silent = _are(ops, ["d"]), _are(ops, ["m"])
    has_before, has_after = _valid(before), _valid(after)
    withdrawn = (deleted | updated) & has_before
    replaced = (inserted | updated) & has_after
    bad = ~silent & ~((deleted & has_before) | replaced)
    # Row 2n is what event n withdraws and row 2n + 1 is what it brings.
    kinds = np.empty((len(ops), 2), dtype=np.int64)
    kinds[:, 0] = np.where(deleted, _DELETE, _WITHDRAW)
    kinds[:, 1] = np.where(inserted, _INSERT, _REPLACE)
    wanted = np.column_stack((withdrawn & ~bad, replaced)).ravel()
    rows = np.flatnonzero(wanted)
    places = rows // 2
    return ChangeRows(
        _taken(before, after, places + (rows % 2) * len(ops)),
        _KINDS.take(pa.array(kinds.ravel()[rows])),
        places,
        [(int(place), _cause(ops[int(place)].as_py())) for place in np.flatnonzero(bad)],
    )


def _taken(before: pa.StructArray, after: pa.StructArray, rows: Int64s) -> list[pa.Array]:
    taken = pa.array(rows)
    pairs = zip(before.flatten(), after.flatten(), strict=True)
    return [pa.concat_arrays(pair).take(taken) for pair in pairs]


def _are(ops: pa.Array, known: Sequence[str]) -> npt.NDArray[np.bool_]:
    found = pc.is_in(ops, pa.array(known, pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def _valid(rows: pa.StructArray) -> npt.NDArray[np.bool_]:
    return np.asarray(rows.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _cause(op: str | None) -> str:
    if op is None:
        return NO_OP
    known = {"t": _TRUNCATED, "d": _NO_BEFORE, "c": _NO_AFTER, "r": _NO_AFTER, "u": _NO_AFTER}
    return known.get(op, f"there is no op {op!r} in Debezium")
