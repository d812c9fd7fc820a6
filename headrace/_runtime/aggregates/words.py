"""Values as int64 words: a bijection that keeps their order, for every type of at most 64 bits.

So minimum, maximum and "the row where x is greatest" are integer arithmetic whatever the type. NaN is greater than
every number, and every NaN is the same one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace._runtime.aggregates.fold import valid_mask

__all__ = ["from_words", "has_words", "to_words", "words_array"]

Words = npt.NDArray[np.int64]

_MAGNITUDE = np.int64(2**63 - 1)
_SIGN = np.uint64(2**63)


def has_words(kind: pa.DataType) -> bool:
    """Whether values of this type can be words."""
    return bool(
        pt.is_integer(kind)
        or pt.is_boolean(kind)
        or pt.is_floating(kind)
        or (pt.is_temporal(kind) and not pt.is_interval(kind))
    )


def to_words(array: pa.Array) -> Words:
    """One word a value; a null is some word."""
    kind = array.type
    if pt.is_floating(kind):
        return _from_floats(_plain(array.cast(pa.float64()), 0.0))
    if pt.is_boolean(kind):
        return _plain(array.cast(pa.int64()), 0)
    if pt.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif kind == pa.uint64():
        return (_plain(array, 0) ^ _SIGN).view(np.int64)
    return _plain(array, 0).astype(np.int64, copy=False)


def words_array(array: pa.Array) -> pa.Array:
    """The words as an Arrow array with the same nulls."""
    if array.type == pa.int64():
        return array
    valid = valid_mask(array)
    return pa.array(to_words(array), mask=None if valid is None else ~valid)


def from_words(words: Words, kind: pa.DataType, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    """The inverse of `to_words`; null where `valid` is false."""
    mask = None if valid is None or valid.all() else ~valid
    if pt.is_floating(kind):
        return pa.array(_to_floats(words), mask=mask).cast(kind)
    if pt.is_boolean(kind):
        return pa.array(words.astype(np.bool_), mask=mask)
    if kind == pa.uint64():
        return pa.array(words.view(np.uint64) ^ _SIGN, mask=mask)
    if pt.is_temporal(kind):
        bits = pa.int32() if kind.bit_width == 32 else pa.int64()
        return pa.array(words.astype(bits.to_pandas_dtype()), bits, mask=mask).view(kind)
    # A slot without a value may hold a sentinel that does not fit the type.
    numbers = words if mask is None or kind == pa.int64() else np.where(mask, 0, words)
    return pa.array(numbers.astype(kind.to_pandas_dtype(), copy=False), kind, mask=mask)


def _plain(array: pa.Array, filler: Any) -> npt.NDArray[Any]:
    filled = pc.fill_null(array, pa.scalar(filler, array.type)) if array.null_count else array
    numbers: npt.NDArray[Any] = filled.to_numpy(zero_copy_only=False)
    return numbers


def _from_floats(numbers: npt.NDArray[np.float64]) -> Words:
    # As integers, positive floats are in order and negative ones in reverse, so those are flipped.
    words: Words = numbers.view(np.int64)
    words = words ^ ((words >> 63) & _MAGNITUDE)
    words[np.isnan(numbers)] = _MAGNITUDE
    return words


def _to_floats(words: Words) -> npt.NDArray[np.float64]:
    numbers = words ^ ((words >> 63) & _MAGNITUDE)
    return numbers.view(np.float64)
