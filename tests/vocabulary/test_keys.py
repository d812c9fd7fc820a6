"""The key hash is in every checkpoint: these vectors may never change."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headrace.keys import (
    KEY_GROUPS,
    check_key_type,
    extend_hashes,
    groups_of,
    hash_keys,
    key_groups,
    shards_of,
)

INSTANT = datetime(2025, 1, 1, 12, tzinfo=UTC)

VECTORS = [
    (
        pa.array([0, 1, -1, 2**63 - 1, None]),
        [
            "c21719b225353d99",
            "c91c02088c080677",
            "8880eba730b34ac1",
            "4022f6d819bd7b6c",
            "749f086d7c0de589",
        ],
    ),
    (
        pa.array([0.0, 1.5, float("nan"), float("inf"), None]),
        [
            "c21719b225353d99",
            "d7ec8b9b18e2d947",
            "084e74dd52937e60",
            "a90a2e2375a1a863",
            "749f086d7c0de589",
        ],
    ),
    (pa.array([True, False, None]), ["c91c02088c080677", "c21719b225353d99", "749f086d7c0de589"]),
    (
        pa.array(["", "a", "auction", "é" * 20, "x" * 2000, None]),
        [
            "c21719b225353d99",
            "e76c175d3156e277",
            "409d4b83bc6afc71",
            "28ea0d12ec647208",
            "f8d093dcffb7bbc5",
            "749f086d7c0de589",
        ],
    ),
    (
        pa.array([b"", b"\x00", b"\x00\x00"]),
        ["c21719b225353d99", "c069116cde2f2bfd", "9ca71920184044e3"],
    ),
    (pa.array([INSTANT], type=pa.timestamp("us", tz="UTC")), ["2c4cbeddbbe67338"]),
    (pa.array([date(2025, 1, 1)]), ["721e0c58f6ae3733"]),
    (pa.array([time(12, 30)], type=pa.time64("us")), ["3d96930b43862748"]),
    (pa.array([timedelta(seconds=3)], type=pa.duration("us")), ["fc060f6e5c8685e2"]),
    (
        pa.array([Decimal("1.50"), Decimal("-1.50")], type=pa.decimal128(10, 2)),
        ["204c450ae8275b94", "7bde043895e9de74"],
    ),
]


def hashed(values, kind=None):
    return hash_keys([pa.array(values, type=kind)]).tolist()


@pytest.mark.parametrize(("column", "expected"), VECTORS, ids=lambda v: str(getattr(v, "type", "")))
def test_hashes_are_the_pinned_ones(column, expected):
    assert [f"{value:016x}" for value in hash_keys([column]).tolist()] == expected


def test_composite_keys_are_the_pinned_ones():
    columns = [pa.array([1, 2, None]), pa.array(["a", None, "a"])]
    assert [f"{value:016x}" for value in hash_keys(columns).tolist()] == [
        "09b11251a777fd91",
        "71992c849dffcf57",
        "9320888477301bfb",
    ]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint64()])
def test_an_integer_hashes_the_same_in_every_width(kind):
    assert hashed([0, 7, 100, None], kind) == hashed([0, 7, 100, None], pa.int64())


def test_floats_hash_by_value():
    assert hashed([-0.0]) == hashed([0.0])
    strange = np.array([0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    assert len({*hashed(strange), *hashed([float("nan")])}) == 1
    assert hashed([1.5], pa.float32()) == hashed([1.5], pa.float64())


def test_text_hashes_by_its_bytes_in_every_layout():
    words = ["", "a", "exactly8", "nine byte", "é" * 700, None, "x" * 1024, "x" * 1025]
    expected = hashed(words, pa.string())
    assert hashed(words, pa.large_string()) == expected
    assert hashed(words, pa.string_view()) == expected
    assert hashed([w if w is None else w.encode() for w in words], pa.binary()) == expected
    assert hash_keys([pa.array(words).dictionary_encode()]).tolist() == expected
    assert hash_keys([pa.array(["skip", *words]).slice(1)]).tolist() == expected
    assert hash_keys([pa.chunked_array([words[:3], words[3:]])]).tolist() == expected


def test_instants_hash_by_microseconds_in_every_unit():
    expected = hashed([INSTANT], pa.timestamp("us", tz="UTC"))
    for unit in ("s", "ms", "ns"):
        assert hashed([INSTANT], pa.timestamp(unit, tz="UTC")) == expected
    assert hashed([INSTANT], pa.timestamp("us", tz="Asia/Tokyo")) == expected
    assert hashed([date(2025, 1, 1)], pa.date32()) == hashed([date(2025, 1, 1)], pa.date64())


def test_null_is_a_key_of_its_own():
    for kind in (pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.decimal128(30, 2)):
        null, zero = hash_keys([pa.array([None], type=kind)]), hash_keys([pa.array([0]).cast(kind)])
        assert null[0] != zero[0]
    assert hashed([None], pa.string()) != hashed([""], pa.string())


def test_the_order_of_columns_counts():
    a, b = pa.array([1, 1]), pa.array([2, 1])
    forward, backward = hash_keys([a, b]), hash_keys([b, a])
    assert forward[0] != backward[0]
    assert forward[1] == backward[1]
    assert hash_keys([pa.array(["ab"]), pa.array(["c"])]) != hash_keys(
        [pa.array(["a"]), pa.array(["bc"])]
    )


def test_keys_spread_evenly_over_the_groups():
    for column in (pa.array(range(100_000)), pa.array([f"user-{n}" for n in range(100_000)])):
        hashes = hash_keys([column])
        assert len(np.unique(hashes)) == 100_000
        counts = np.bincount(key_groups(hashes), minlength=KEY_GROUPS)
        assert counts.min() > 650
        assert counts.max() < 920


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16, 128])
def test_shards_own_contiguous_ranges_that_cover_all_groups(shards):
    groups = np.arange(KEY_GROUPS, dtype=np.uint8)
    owners = shards_of(groups, shards)
    for shard in range(shards):
        assert np.flatnonzero(owners == shard).tolist() == list(groups_of(shard, shards))


def test_a_longer_key_stays_in_the_group_of_the_shorter():
    short = hash_keys([pa.array([5] * 100)])
    longer = extend_hashes(short, [pa.array(range(100))])
    assert (key_groups(longer) == key_groups(short)).all()
    assert len(np.unique(longer)) == 100


def test_types_that_can_be_keys():
    fine = [pa.int8(), pa.string(), pa.bool_(), pa.date32(), pa.decimal128(9, 2), pa.binary(4)]
    assert all(check_key_type(kind) for kind in fine)
    assert check_key_type(pa.dictionary(pa.int32(), pa.string()))
    refused = [
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.null(),
        pa.decimal256(60, 2),
    ]
    assert not any(check_key_type(kind) for kind in refused)


def test_a_list_is_refused_with_its_type():
    with pytest.raises(TypeError, match="keyed by a column of type list"):
        hash_keys([pa.array([[1]])])


def test_no_columns_are_refused():
    with pytest.raises(ValueError, match="at least one column"):
        hash_keys([])
