"""What an epoch of changes comes to: against a dictionary that is written to row by row."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connectors.databases.changes import effect
from headrace.errors import SinkRefused

CHANGES = st.sampled_from(["+I", "-U", "+U", "-D"])
ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.integers(), CHANGES))
SCHEMA = pa.schema({"a": pa.int64(), "b": pa.string(), "v": pa.decimal128(30, 0)})


def table(rows: list[tuple[int, str, int, str]], parts: int) -> tuple[pa.Table, pa.ChunkedArray]:
    columns = [{"a": a, "b": b, "v": v % 10**20} for a, b, v, _ in rows]
    cut = len(rows) * parts // 3
    whole = [pa.RecordBatch.from_pylist(part, SCHEMA) for part in (columns[:cut], columns[cut:])]
    changes = pa.chunked_array([pa.array([row[3] for row in rows], pa.string())])
    return pa.Table.from_batches(whole), changes


@settings(max_examples=15, deadline=None)
@given(ROWS, st.integers(0, 3))
def test_the_last_change_of_each_key_wins(
    rows: list[tuple[int, str, int, str]], parts: int
) -> None:
    last: dict[tuple[int, str], tuple[int, str]] = {}
    for a, b, v, change in rows:
        last[a, b] = (v % 10**20, change)
    whole, changes = table(rows, parts)
    done = effect(whole, ("a", "b"), changes)
    written = {(row["a"], row["b"]): int(row["v"]) for row in done.written.to_pylist()}
    deleted = [(row["a"], row["b"]) for row in done.deleted.to_pylist()]
    assert written == {k: v for k, (v, change) in last.items() if change in ("+I", "+U")}
    assert sorted(deleted) == sorted(k for k, (_, change) in last.items() if change in ("-U", "-D"))
    assert done.written.num_rows == len(written)
    assert list(written) == sorted(written)


def test_without_changes_every_row_is_one_to_write() -> None:
    rows = pa.table({"k": ["x", "y", "x"], "v": [1, 2, 3]})
    done = effect(rows, ("k",), None)
    assert done.written.to_pylist() == [{"k": "x", "v": 3}, {"k": "y", "v": 2}]
    assert done.deleted.num_rows == 0


def test_keys_that_a_server_holds_equal_are_one() -> None:
    rows = pa.table({"k": [0.0, -0.0, float("nan"), float("nan"), 1.5], "v": [1, 2, 3, 4, 5]})
    assert sorted(effect(rows, ("k",), None).written["v"].to_pylist()) == [2, 4, 5]


@pytest.mark.parametrize(
    ("rows", "change", "words"),
    [
        ({"k": [1, None], "v": [1, 2]}, ["+I", "+I"], "no value for 'k'"),
        ({"k": [1, 2], "v": [1, 2]}, ["+I", "insert"], "holds 'insert'"),
        ({"k": [1, 2], "v": [1, 2]}, ["+I", None], "holds None"),
    ],
)
def test_rows_that_no_change_could_find_are_refused(
    rows: dict[str, list[Any]], change: list[str | None], words: str
) -> None:
    with pytest.raises(SinkRefused, match=words):
        effect(pa.table(rows), ("k",), pa.chunked_array([pa.array(change, pa.string())]))
