"""Rows that wait for the watermark: when they are due, and in which order they come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._runtime import pending
from headrace._runtime.arrivals import ARRIVALS
from headrace._runtime.operator import HASH, Outlook
from headrace._runtime.pending import Pending, pending_table
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.unfolded import TIMESTAMP
from headrace.keys import hash_keys
from headrace.watermarks import END_OF_TIME, NO_WATERMARK

WAITING = pa.schema([("key", pa.int64()), ("n", pa.int64()), (TIMESTAMP, pa.int64())])


def new(**options: Any) -> tuple[Pending, ShardState]:
    tables = [pending_table(name, WAITING) for name in ("waiting", "others")]
    state = ShardState([*tables, ARRIVALS], MemoryChunkStore(), MemoryArrays(), range(128))
    state.open()
    return Pending("waiting", WAITING, state, **options), state


def batch(*rows: tuple[int, int, int]) -> pa.RecordBatch:
    """(key, n, timestamp)"""
    columns = [pa.array(np.array([row[i] for row in rows], np.int64)) for i in range(3)]
    arrays = [*columns, pa.array(hash_keys(columns[:1]))]
    return pa.RecordBatch.from_arrays(arrays, names=[*WAITING.names, HASH])


def numbers(rows: pa.RecordBatch | None) -> list[int]:
    return [] if rows is None else rows.column("n").to_pylist()


def test_rows_are_due_when_the_watermark_has_passed_them_by_the_wait() -> None:
    rows, _ = new(wait_us=5)
    rows.add([batch((1, 1, 10), (1, 2, 12)), batch((2, 3, 11))])
    assert rows.outlook() == Outlook(15, 2)
    assert numbers(rows.release([], NO_WATERMARK)) == []
    assert numbers(rows.release([], 14)) == []
    assert sorted(numbers(rows.release([], 16))) == [1, 3]
    assert rows.outlook() == Outlook(17, 1)
    assert numbers(rows.release([], END_OF_TIME)) == [2]
    assert rows.is_empty


def test_rows_from_before_the_tick_go_out_or_wait() -> None:
    rows, _ = new()
    rows.add([batch((1, 1, 10))])
    assert sorted(numbers(rows.release([batch((1, 2, 9), (1, 3, 30))], 20))) == [1, 2]
    assert numbers(rows.release([], 30)) == [3]


@pytest.mark.parametrize("piece_rows", [1, 2, 64])
def test_rows_of_one_key_and_time_come_back_in_the_order_in_which_they_came(
    monkeypatch: pytest.MonkeyPatch, piece_rows: int
) -> None:
    monkeypatch.setattr(pending, "PIECE_ROWS", piece_rows)
    rows, state = new()
    rows.add([batch((1, 1, 10), (1, 2, 5), (1, 3, 10)), batch((1, 4, 10))])
    state.commit()
    rows.add([batch((1, 5, 10), (1, 6, 10))])
    assert numbers(rows.release([], 7)) == [2]
    assert numbers(rows.release([batch((1, 7, 10))], 10)) == [1, 3, 4, 5, 6, 7]


def test_two_tables_of_a_step_do_not_mix_up_their_pieces() -> None:
    rows, state = new()
    others = Pending("others", WAITING, state)
    rows.add([batch((1, 1, 10))])
    others.add([batch((1, 2, 20))])
    rows.add([batch((1, 3, 10))])
    assert numbers(rows.release([], 10)) == [1, 3]
    others.add([batch((1, 4, 20))])
    assert numbers(others.release([], 20)) == [2, 4]
