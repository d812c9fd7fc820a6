"""Columns on their way into state and out of it, for functions on columns: what fits which type, and as what it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from headrace._runtime.state.columns import plain, to_numpy
from headrace._runtime.state.spec import fixed_dtype
from headrace.errors import UserCodeError

__all__ = ["Complaint", "as_column", "filled", "numpy_type", "shown_as"]

Mask = npt.NDArray[np.bool_]
Complaint = Callable[[str], UserCodeError]


def numpy_type(kind: pa.DataType) -> np.dtype[Any] | None:
    """What numpy calls a type; None if it has no such type, or only as objects."""
    if pt.is_timestamp(kind):
        return np.dtype(f"datetime64[{kind.unit}]")
    if pt.is_duration(kind):
        return np.dtype(f"timedelta64[{kind.unit}]")
    if pt.is_date(kind):
        return np.dtype("datetime64[D]" if pt.is_date32(kind) else "datetime64[ms]")
    return None if pt.is_time(kind) else fixed_dtype(kind)


def shown_as(numbers: npt.NDArray[Any], kind: np.dtype[Any] | None) -> npt.NDArray[Any]:
    """Stored numbers as users see them."""
    if kind is None or numbers.dtype == kind:
        return numbers
    return numbers.view(kind) if numbers.dtype.itemsize == kind.itemsize else numbers.astype(kind)


def filled(column: pa.Array, default: Any) -> pa.Array:
    """The column with this instead of nulls; for all types, also those that Arrow does not fill."""
    if not column.null_count:
        return column
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    places = np.where(nulls, len(column), np.arange(len(column)))
    return pa.concat_arrays([column, pa.array([default], column.type)]).take(plain(places))


def as_column(
    values: Any, kind: pa.DataType, many: int, wrong: Complaint
) -> tuple[Any, Mask | None]:
    """So many values in the form that a table takes, and which of them are null, if any is.

    Without nulls numbers are a numpy array; with nulls it is an Arrow array.
    """
    if isinstance(values, np.generic):
        values = np.full(many, values)
    if _is_one(values):
        values = _array([values], kind, wrong).take(plain(np.zeros(many, np.int64)))
    elif isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        direct = _direct(values, kind, many, wrong)
        if direct is not None:
            return direct, None
    column = _fitting(_array(values, kind, wrong), kind, wrong)
    _check_length(len(column), many, wrong)
    if column.null_count:
        return column, column.is_null().to_numpy(zero_copy_only=False)
    return (column if fixed_dtype(kind) is None else to_numpy(column, kind)), None


def _is_one(values: Any) -> bool:
    return isinstance(values, str | bytes | dict | pa.Scalar) or not isinstance(values, Sized)


def _direct(
    values: npt.NDArray[Any], kind: pa.DataType, many: int, wrong: Complaint
) -> npt.NDArray[Any] | None:
    """Numbers without a detour, if they are such."""
    dtype = numpy_type(kind)
    if dtype is None or dtype.kind in "mM" or values.dtype.kind == "O":
        return None
    if not np.can_cast(values.dtype, dtype, "safe"):
        raise wrong(f"it holds {kind}, and these are {values.dtype}; convert them with astype")
    if values.ndim != 1:
        raise wrong(f"an array of the shape {values.shape} has not one value for each place")
    _check_length(len(values), many, wrong)
    return values.astype(dtype, copy=False)


def _array(values: Any, kind: pa.DataType, wrong: Complaint) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    try:
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.data, mask=np.ma.getmaskarray(values))
        if isinstance(values, np.ndarray) and values.dtype.kind != "O":
            return pa.array(values)
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
        raise wrong(f"it holds {kind}: {error}") from None


def _fitting(column: pa.Array, kind: pa.DataType, wrong: Complaint) -> pa.Array:
    found = column.type
    if found == kind:
        return column
    if pt.is_dictionary(found):
        return _fitting(column.dictionary_decode(), kind, wrong)
    if not _widens(found, kind):
        raise wrong(f"it holds {kind}, and these are {found}; convert them")
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        raise wrong(f"it holds {kind}: {error}") from None


def _widens(found: pa.DataType, kind: pa.DataType) -> bool:
    """Whether every value of a type is one of the other, or Arrow checks that these are."""
    if pt.is_null(found):
        return True
    if any(all(map(is_such, (found, kind))) for is_such in _ALIKE):
        return True
    numbers = fixed_dtype(found), fixed_dtype(kind)
    if None in numbers or pt.is_temporal(found) or pt.is_temporal(kind):
        return False
    return np.can_cast(numbers[0], numbers[1], "safe")  # type: ignore[arg-type]


_ALIKE = (
    pt.is_timestamp,
    pt.is_duration,
    pt.is_date,
    pt.is_time,
    pt.is_decimal,
    pt.is_nested,
    lambda kind: pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind),
    lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind),
)


def _check_length(found: int, many: int, wrong: Complaint) -> None:
    if found != many:
        raise wrong(f"there are {found} values for {many} places")
