"""Orders and payments for joins.py, made from their numbers: by turns, as rows of one table."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["FIRST_MS", "ORDER", "PAYMENT", "SIDES", "TIME", "Int64s", "Maker", "sides", "times"]

Int64s = npt.NDArray[np.int64]
Maker = Callable[[int, int], pa.RecordBatch]

#: 2026-01-01 00:00 UTC.
FIRST_MS = 1_767_225_600_000
TIME = pa.timestamp("us", tz="UTC")
SIDES = pa.schema({"side": pa.int8(), "id": pa.int64(), "number": pa.int64(), "ts": TIME})
ORDER, PAYMENT, NEITHER = 0, 1, 2


def sides(kind: str, keys: int, event_rate: int, *, thin_rows: int = 0, step: int = 1) -> Maker:
    """Of the first `thin_rows` only every step-th order and payment is one; the others belong to neither side."""

    def rows(start: int, end: int) -> pa.RecordBatch:
        number = np.arange(start, end, dtype=np.int64)
        place, side = number // 2, number % 2
        ids = np.where(side == ORDER, _order(kind, place, keys), _payment(kind, place, keys))
        if start < thin_rows and step > 1:
            side[(number < thin_rows) & (place % step > 0)] = NEITHER
        columns = [side.astype(np.int8), ids, place, times(number, event_rate)]
        return pa.record_batch(columns, SIDES)

    return rows


def times(number: Int64s, event_rate: int) -> npt.NDArray[np.datetime64]:
    """When events happen, in whole milliseconds."""
    return ((FIRST_MS + number * 1000 // event_rate) * 1000).view("datetime64[us]")


def _order(kind: str, place: Int64s, keys: int) -> Int64s:
    return place if kind in ("interval", "regular") else (place * 7919 + 13) % keys


def _payment(kind: str, place: Int64s, keys: int) -> Int64s:
    if kind == "interval":
        # In each block of payments every order of that block is paid once.
        return place // keys * keys + (place * 7919 + 13) % keys
    if kind == "regular":
        # Any order that has come so far.
        return (place * 7919 + 13) % (place + 1)
    if kind == "latest":
        # The same keys as orders of the same epoch: so many results change, however many keys there are.
        return _order(kind, place, keys)
    return (place * 7907 + 29) % keys
