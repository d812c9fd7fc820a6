"""Kafka's own partitioner: murmur2 of the key's bytes, so that every other client finds a key where it looks.

The hash is computed for a whole column at once, four bytes of every key a step: keys are put in order of their length
first, so that the ones that are not done yet always stand together at the end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["hashes", "partitions"]

_SEED = np.uint32(0x9747B28C)
_M = np.uint32(0x5BD1E995)
_POSITIVE = np.int32(0x7FFFFFFF)

_Words = npt.NDArray[np.uint32]


def hashes(keys: pa.Array) -> npt.NDArray[np.int32]:
    """The murmur2 of every key of a binary column, as Java's signed integer; a null's is that of no bytes."""
    starts, lengths, content = _layout(keys)
    order = np.argsort(lengths, kind="stable")
    found = np.empty(len(keys), dtype=np.uint32)
    found[order] = _mixed(starts[order], lengths[order], content)
    return found.view(np.int32)


def partitions(
    hashed: npt.NDArray[np.int32], count: int | npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """The partition of each hash in a topic of so many partitions, or each in one of its own number."""
    return (hashed & _POSITIVE) % np.asarray(count, np.int32)


def _layout(
    keys: pa.Array,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where each key begins, how long it is, and the bytes, with room to read a word behind the last."""
    column = keys.cast(pa.binary())
    _, offsets_at, bytes_at = column.buffers()
    if offsets_at is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(4, np.uint8)
    offsets = np.frombuffer(offsets_at, np.int32)[column.offset : column.offset + len(keys) + 1]
    offsets = offsets.astype(np.int64)
    held = np.zeros(0, np.uint8) if bytes_at is None else np.frombuffer(bytes_at, np.uint8)
    content = np.zeros(int(offsets[-1] - offsets[0]) + 4, np.uint8)
    content[:-4] = held[offsets[0] : offsets[-1]]
    return offsets[:-1] - offsets[0], np.diff(offsets), content


def _mixed(
    starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], content: npt.NDArray[np.uint8]
) -> _Words:
    # A word can begin at any byte, so the view steps by one byte though its items are four.
    words: _Words = np.ndarray((len(content) - 3,), dtype="<u4", buffer=content.data, strides=(1,))
    state: _Words = _SEED ^ lengths.astype(np.uint32)
    whole = lengths // 4
    for step in range(int(whole[-1]) if len(whole) else 0):
        first = int(np.searchsorted(whole, step, side="right"))
        word = words[starts[first:] + 4 * step] * _M
        word = (word ^ (word >> np.uint32(24))) * _M
        state[first:] = state[first:] * _M ^ word
    return _finished(_with_rest(state, words[starts + 4 * whole], lengths % 4))


def _with_rest(state: _Words, word: _Words, left: npt.NDArray[np.int64]) -> _Words:
    """The one to three bytes that fill no word."""
    kept = word & ((np.uint32(1) << (np.uint32(8) * left.astype(np.uint32))) - np.uint32(1))
    return np.where(left > 0, (state ^ kept) * _M, state)


def _finished(state: _Words) -> _Words:
    state = (state ^ (state >> np.uint32(13))) * _M
    return state ^ (state >> np.uint32(15))
