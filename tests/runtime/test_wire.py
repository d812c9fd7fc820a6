"""How rows are divided among shards and parcels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime.operator import HASH
from headrace._runtime.wire import PARCEL_BYTES, pieces, split_by_shard
from headrace.keys import hash_keys, key_groups, shards_of


def batch(rows: int, width: int = 1) -> pa.RecordBatch:
    numbers = pa.array(np.arange(rows))
    texts = pa.array(["x" * width] * rows)
    return pa.RecordBatch.from_arrays(
        [numbers, texts, pa.array(hash_keys([numbers]))], names=["n", "text", HASH]
    )


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_every_row_goes_to_its_shard_once(shards: int, in_order: bool) -> None:
    whole, found = batch(500), []
    for shard, piece in split_by_shard(whole, shards, in_order=in_order):
        assert set(shards_of(key_groups(piece.column(HASH).to_numpy()), shards)) == {shard}
        found += piece.column("n").to_pylist()
    assert sorted(found) == list(range(500))


def test_rows_of_a_shard_stay_in_order_or_are_sorted_by_key_group() -> None:
    for _, piece in split_by_shard(batch(500), 3, in_order=True):
        assert piece.column("n").to_pylist() == sorted(piece.column("n").to_pylist())
    for _, piece in split_by_shard(batch(500), 3):
        groups = key_groups(piece.column(HASH).to_numpy())
        assert (np.diff(groups.astype(int)) >= 0).all()


def test_pieces_fit_a_parcel_and_keep_their_order() -> None:
    whole = batch(100, PARCEL_BYTES // 10)
    found = list(pieces(whole))
    assert len(found) > 10
    assert all(piece.nbytes <= PARCEL_BYTES for piece in found)
    assert [n for piece in found for n in piece.column("n").to_pylist()] == list(range(100))
    assert all(p.nbytes <= PARCEL_BYTES for _, p in split_by_shard(whole, 2, in_order=True))
    assert list(pieces(batch(0))) == []
