"""The hash of a key: which key group, and so which shard, a row belongs to.

The hash is a pure function of the values, pinned by test vectors: it is in every checkpoint, so it may
never change. Equal values hash equally whatever type carries them: int32 as int64, -0.0 as 0.0, every
NaN as one, text by its UTF-8 bytes, instants in microseconds; null is a value of its own. Decimals hash
by their unscaled integer, so one key column keeps one scale. Distinct keys may share a hash; whoever
needs exact keys compares them.

It is neither Python's `hash()` nor a cryptographic one.
"""

import functools
import hashlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

__all__ = [
    "KEY_GROUPS",
    "check_key_type",
    "extend_hashes",
    "groups_of",
    "hash_keys",
    "home_in",
    "key_groups",
    "lowest_hashes",
    "shards_of",
]

#: The number of key groups: the finest division of keyed state, whatever the number of shards.
KEY_GROUPS = 128

Words: TypeAlias = npt.NDArray[np.uint64]

_GROUP_SHIFT = np.uint64(57)
_LOW_BITS = np.uint64((1 << 57) - 1)
_SEED = np.uint64(0x9E3779B97F4A7C15)
_PRIME = np.uint64(0xD6E8FEB86659FD93)
_NULL = np.uint64(0xA0761D6478BD642F)
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_MIX_SHIFT = np.uint64(33)
_HALF = np.uint64(32)
_LONG_BYTES = 1024
_TAIL_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
_UNIT_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


def check_key_type(key_type: pa.DataType) -> bool:
    """Whether rows can be keyed by a column of this type."""
    if pt.is_dictionary(key_type):
        return check_key_type(key_type.value_type)
    return bool(
        pt.is_integer(key_type)
        or pt.is_boolean(key_type)
        or key_type in (pa.float32(), pa.float64())
        or (pt.is_temporal(key_type) and not pt.is_interval(key_type))
        or (pt.is_decimal(key_type) and key_type.byte_width <= 16)
        or _is_bytes(key_type)
    )


def hash_keys(columns: Sequence[pa.Array]) -> Words:
    """One 64-bit hash a row over the key columns, in their order."""
    if not columns:
        raise ValueError("a key needs at least one column")
    hashes = np.full(len(columns[0]), _SEED, dtype=np.uint64)
    _mix_columns(hashes, columns)
    return hashes


def extend_hashes(hashes: Words, columns: Sequence[pa.Array]) -> Words:
    """The hash of a longer key that stays in the key group of the shorter one."""
    longer = hashes.copy()
    _mix_columns(longer, columns)
    longer &= _LOW_BITS
    longer |= hashes & ~_LOW_BITS
    return longer


def key_groups(hashes: Words) -> npt.NDArray[np.uint8]:
    """The key group of each hash: its top seven bits."""
    return (hashes >> _GROUP_SHIFT).astype(np.uint8)


def lowest_hashes(groups: npt.NDArray[Any]) -> Words:
    """A hash in each of these key groups: the lowest."""
    return groups.astype(np.uint64) << _GROUP_SHIFT


def shards_of(groups: npt.NDArray[np.uint8], shards: int) -> npt.NDArray[np.int64]:
    """The shard that owns each key group, in contiguous ranges."""
    return groups.astype(np.int64) * shards // KEY_GROUPS


def groups_of(shard: int, shards: int) -> range:
    """The key groups that a shard owns: the inverse of `shards_of`."""
    return range(-(-shard * KEY_GROUPS // shards), -(-(shard + 1) * KEY_GROUPS // shards))


@functools.lru_cache(maxsize=KEY_GROUPS)
def home_in(groups: range) -> int:
    """The least number whose hash lies in a range of key groups: the key of what a shard has as a whole."""
    candidates = np.arange(4096)
    found = key_groups(hash_keys([pa.array(candidates)]))
    return int(candidates[(found >= groups.start) & (found < groups.stop)][0])


def _mix_columns(hashes: Words, columns: Sequence[pa.Array]) -> None:
    for column in columns:
        hashes *= _PRIME
        hashes ^= _words(column)
        _finalise(hashes)


def _finalise(words: Words) -> None:
    """Spread every input bit over all 64 (the finaliser of MurmurHash3, a bijection)."""
    words ^= words >> _MIX_SHIFT
    words *= _MIX_1
    words ^= words >> _MIX_SHIFT
    words *= _MIX_2
    words ^= words >> _MIX_SHIFT


def _words(column: pa.Array) -> Words:
    """One canonical 64-bit word a value."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    words = _canonical(column)
    if column.null_count:
        words = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, words)
    return words


def _canonical(column: pa.Array) -> Words:
    kind = column.type
    if _is_bytes(kind):
        return _bytes_words(column)
    if pt.is_decimal(kind):
        return _decimal_words(column)
    if pt.is_floating(kind):
        return _float_words(column)
    if pt.is_boolean(kind):
        return _integers(column.cast(pa.uint8())).view(np.uint64)
    if pt.is_temporal(kind) and not pt.is_interval(kind):
        return _temporal(column).view(np.uint64)
    if pt.is_integer(kind):
        return _integers(column).view(np.uint64)
    raise TypeError(f"rows cannot be keyed by a column of type {kind}")


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_string_view(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
        or pt.is_fixed_size_binary(kind)
    )


def _integers(column: pa.Array) -> npt.NDArray[np.int64]:
    filled = pc.fill_null(column, 0) if column.null_count else column
    numbers: npt.NDArray[np.int64] = filled.to_numpy().astype(np.int64, copy=False)
    return numbers


def _temporal(column: pa.Array) -> npt.NDArray[np.int64]:
    kind = column.type
    ticks = _integers(column.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pt.is_date32(kind):
        return ticks
    if pt.is_date64(kind):
        return ticks // 86_400_000
    return ticks // 1_000 if kind.unit == "ns" else ticks * _UNIT_US[kind.unit]


def _float_words(column: pa.Array) -> Words:
    filled = pc.fill_null(column, 0.0) if column.null_count else column
    # Adding 0.0 turns -0.0 into 0.0 and leaves every other number as it is.
    numbers = filled.to_numpy().astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    words: Words = numbers.view(np.uint64)
    return words


def _decimal_words(column: pa.Array) -> Words:
    wide = column.cast(pa.decimal128(38, column.type.scale))
    halves = np.frombuffer(wide.buffers()[1], dtype=np.uint64, count=2 * (wide.offset + len(wide)))
    pairs = halves.reshape(-1, 2)[wide.offset :]
    words = pairs[:, 1] * _PRIME
    words ^= pairs[:, 0]
    _finalise(words)
    return words


def _bytes_words(column: pa.Array) -> Words:
    if pt.is_string_view(column.type):
        column = column.cast(pa.large_string())
    elif pt.is_binary_view(column.type) or pt.is_fixed_size_binary(column.type):
        column = column.cast(pa.large_binary())
    large = pt.is_large_string(column.type) or pt.is_large_binary(column.type)
    width = np.dtype(np.int64 if large else np.int32)
    _, offsets, content = column.buffers()
    if len(column) == 0 or offsets is None:
        return np.zeros(len(column), dtype=np.uint64)
    limits = np.frombuffer(
        offsets, dtype=width, count=len(column) + 1, offset=column.offset * width.itemsize
    )
    start, end = int(limits[0]), int(limits[-1])
    padded = np.zeros(end - start + 8, dtype=np.uint8)
    if end > start:
        padded[:-8] = np.frombuffer(content, dtype=np.uint8, count=end - start, offset=start)
    relative = limits.astype(np.int64) - start
    return _hash_slices(padded, relative[:-1], np.diff(relative))


def _hash_slices(
    padded: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> Words:
    """Hash byte strings eight bytes at a time, all rows that are long enough at once."""
    words = lengths.astype(np.uint64) * _PRIME
    # An unaligned 64-bit view at every byte: a gather from it reads eight bytes of a row.
    windows = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    long_rows = np.flatnonzero(lengths > _LONG_BYTES)
    rows = np.flatnonzero((lengths > 0) & (lengths <= _LONG_BYTES))
    place = 0
    while rows.size:
        left = lengths[rows] - place
        piece = windows[starts[rows] + place]
        piece &= _TAIL_MASKS[np.minimum(left, 8)]
        piece ^= words[rows]
        piece *= _MIX_1
        piece ^= piece >> _HALF
        words[rows] = piece
        place += 8
        rows = rows[left > 8]
    for row in long_rows:
        content = padded[starts[row] : starts[row] + lengths[row]].tobytes()
        digest = hashlib.blake2b(content, digest_size=8).digest()
        words[row] ^= np.uint64(int.from_bytes(digest, "little"))
    _finalise(words)
    return words
