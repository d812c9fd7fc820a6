"""Instants as arrays: microseconds since 1970 UTC, from whatever users have them in."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.process.context import micros
from headrace.errors import UserCodeError

__all__ = ["as_micros"]

Integers = npt.NDArray[np.int64]


def as_micros(given: Any, many: int, uid: str) -> Integers:
    """So many instants: of a numpy array (datetime64, or whole microseconds), an Arrow array, a list of datetimes, or
    one instant for all.
    """
    if isinstance(given, datetime):
        return np.full(many, micros(given, uid), np.int64)
    if isinstance(given, list | tuple):
        given = pa.array(given) if len(given) else np.empty(0, np.int64)
    if isinstance(given, pa.Array | pa.ChunkedArray):
        given = _of_arrow(given, uid)
    numbers = _of_numpy(np.asarray(given), uid)
    if numbers.ndim == 0:
        return np.full(many, numbers, np.int64)
    if numbers.shape != (many,):
        raise UserCodeError(
            f"The code of step '{uid}' gave instants of the shape {numbers.shape} where there must be {many}."
        )
    return numbers


def _of_arrow(given: Any, uid: str) -> npt.NDArray[Any]:
    if given.null_count:
        raise UserCodeError(
            f"The code of step '{uid}' gave instants of which {given.null_count} are null; leave them out."
        )
    if pt.is_timestamp(given.type):
        given = given.cast(pa.timestamp("us", given.type.tz), safe=False).cast(pa.int64())
    if not pt.is_integer(given.type):
        raise _not_instants(given.type, uid)
    found: npt.NDArray[Any] = given.to_numpy()
    return found


def _of_numpy(given: npt.NDArray[Any], uid: str) -> Integers:
    if given.dtype.kind == "M":
        if np.isnat(given).any():
            raise UserCodeError(
                f"The code of step '{uid}' gave instants that are NaT; leave them out."
            )
        return given.astype("datetime64[us]").view(np.int64)
    if given.dtype.kind not in "iu":
        raise _not_instants(given.dtype, uid)
    return given.astype(np.int64, copy=False)


def _not_instants(kind: Any, uid: str) -> UserCodeError:
    return UserCodeError(
        f"The code of step '{uid}' gave an array of {kind} for instants; give datetime64, Arrow timestamps, or whole"
        " microseconds since 1970 UTC such as ctx.timestamps + 60_000_000."
    )
