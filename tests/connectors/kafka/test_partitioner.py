"""Keys go to the partition that every other Kafka client expects them in."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.kafka.writing.partitioner import hashes, partitions
from tests.examples import examples

#: The vectors of Kafka's own tests of its hash.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def plain(key: bytes) -> int:
    """The hash of one key, written down byte by byte."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    state = 0x9747B28C ^ len(key)
    for at in range(0, len(key) - 3, 4):
        word = int.from_bytes(key[at : at + 4], "little") * m & mask
        word = (word ^ word >> 24) * m & mask
        state = (state * m & mask) ^ word
    rest = key[len(key) // 4 * 4 :]
    if rest:
        state = (state ^ int.from_bytes(rest, "little")) * m & mask
    state = (state ^ state >> 13) * m & mask
    state ^= state >> 15
    return state - (1 << 32) if state >> 31 else state


def test_known_vectors() -> None:
    assert hashes(pa.array(list(KNOWN), pa.binary())).tolist() == list(KNOWN.values())


@examples(15)
@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 5))
def test_a_column_is_hashed_as_its_keys_are(keys: list[bytes], skipped: int) -> None:
    column = pa.array(keys, pa.binary()).slice(skipped)
    assert hashes(column).tolist() == [plain(key) for key in keys[skipped:]]


def test_nulls_and_empty_keys_have_the_hash_of_no_bytes() -> None:
    assert hashes(pa.array([None, b"", None], pa.binary())).tolist() == [plain(b"")] * 3
    assert hashes(pa.array([], pa.binary())).tolist() == []


@pytest.mark.parametrize("count", [1, 3, 7])
def test_partitions_are_never_negative(count: int) -> None:
    hashed = np.array([-973932308, 479470107, -(2**31)], np.int32)
    expected = [(int(one) & 0x7FFFFFFF) % count for one in hashed]
    assert partitions(hashed, count).tolist() == expected
