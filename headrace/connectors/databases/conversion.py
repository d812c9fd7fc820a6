"""A stream's columns in the types that a table takes them in."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connectors.databases.dialect import Cell, advice_on_rows
from headrace.connectors.databases.jsontext import json_texts
from headrace.errors import SinkRefused

__all__ = ["converted"]


def converted(rows: pa.Table, cells: Sequence[Cell]) -> pa.Table:
    """The columns of the cells, each in the type that is loaded. `SinkRefused` names the one that does not fit."""
    columns = [_column(rows.column(cell.name), cell) for cell in cells]
    return pa.table(columns, names=[cell.name for cell in cells])


def _column(column: pa.ChunkedArray, cell: Cell) -> pa.ChunkedArray:
    try:
        return _cast(_plain(column), cell)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        advice = advice_on_rows("widen the table's column", "cast it in the stream")
        raise SinkRefused(
            f"column {cell.name!r} is {column.type} in the stream and does not fit the table's:"
            f" {' '.join(str(error).split())}; {advice}"
        ) from error


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without dictionaries and extension types."""
    kind = column.type
    if isinstance(kind, pa.DictionaryType):
        return column.cast(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.chunked_array([part.storage for part in column.chunks], kind.storage_type)
    return column


def _cast(column: pa.ChunkedArray, cell: Cell) -> pa.ChunkedArray:
    if cell.as_json:
        return pa.chunked_array([json_texts(part) for part in column.chunks], pa.string())
    if column.type == cell.arrow:
        return column
    # Servers keep microseconds; what is finer is cut. Everything else that would lose something is an error.
    finer = pa.types.is_temporal(column.type) and getattr(column.type, "unit", "") == "ns"
    return _still_finite(column, column.cast(cell.arrow, safe=not finer))


def _still_finite(before: pa.ChunkedArray, after: pa.ChunkedArray) -> pa.ChunkedArray:
    """Arrow makes infinity of a number that is too large for a smaller type, also where it is to be safe."""
    was, now = before, after
    while pa.types.is_list(now.type):
        was, now = pc.list_flatten(was), pc.list_flatten(now)
    narrowed = pa.types.is_float64(was.type) and pa.types.is_float32(now.type)
    if narrowed and pc.any(pc.xor(pc.is_inf(was), pc.is_inf(now))).as_py():
        raise pa.ArrowInvalid(f"a number is out of the range of {now.type}")
    return after
