"""What an epoch of changes comes to: against lists from which rows are taken one by one."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.databases.changes import effect
from headrace.errors import SinkRefused
from tests.examples import examples

CHANGES = st.sampled_from(["+I", "-U", "+U", "-D"])
VALUES = st.none() | st.integers(0, 2)
Row = tuple[int, str, int | None, str]
ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), VALUES, CHANGES), max_size=20)
SCHEMA = pa.schema({"a": pa.int64(), "b": pa.string(), "v": pa.decimal128(30, 0)})


def table(rows: list[Row], parts: int) -> tuple[pa.Table, pa.ChunkedArray]:
    columns = [{"a": a, "b": b, "v": v} for a, b, v, _ in rows]
    cut = len(rows) * parts // 3
    whole = [pa.RecordBatch.from_pylist(part, SCHEMA) for part in (columns[:cut], columns[cut:])]
    changes = pa.chunked_array([pa.array([row[3] for row in rows], pa.string())])
    return pa.Table.from_batches(whole), changes


def written_of(rows: list[tuple[int | None, str]]) -> int | str | None:
    """The value that a key has in the end, or that it is "gone"; of rows of one key in order of their arrival."""
    come = [(place, value) for place, (value, change) in enumerate(rows) if change[0] == "+"]
    gone = []
    for place, (value, change) in enumerate(rows):
        same = [one for one in come if one[1] == value]
        if change[0] == "-" and same:
            come.remove(same[0])
        elif change[0] == "-":
            gone.append((place, value))
    if not come and not gone:
        value, change = rows[-1]
        updates = [value for value, change in rows if change == "+U"] if change == "-U" else []
        return value if change[0] == "+" else updates[-1] if updates else "gone"
    wiped = max((place for place, value in gone if value is None), default=-1)
    left = [value for place, value in come if place > wiped]
    return left[-1] if left else "gone"


@examples(200)
@given(ROWS, st.integers(0, 3))
def test_a_key_has_the_last_row_that_is_not_taken_back(rows: list[Row], parts: int) -> None:
    by_key: dict[tuple[int, str], list[tuple[int | None, str]]] = {}
    for a, b, v, change in rows:
        by_key.setdefault((a, b), []).append((v, change))
    whole, changes = table(rows, parts)
    done = effect(whole, ("a", "b"), changes)
    written = {(row["a"], row["b"]): row["v"] for row in done.written.to_pylist()}
    deleted = [(row["a"], row["b"]) for row in done.deleted.to_pylist()]
    right = {key: written_of(mine) for key, mine in by_key.items()}
    assert written == {key: value for key, value in right.items() if value != "gone"}
    assert deleted == sorted(key for key, value in right.items() if value == "gone")
    assert list(written) == sorted(written)


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ("+U new, -U old", "new"),
        ("-U old, +U new", "new"),
        ("+I new, -D new", "gone"),
        ("-U old, +U new, -D new", "gone"),
        ("-D, +I new", "new"),
        ("+U new, -D", "gone"),
        ("+U same, -U same", "same"),
    ],
)
def test_a_withdrawal_takes_back_what_it_describes(changes: str, value: str) -> None:
    told = [change.split() for change in changes.split(", ")]
    values = [words[1] if words[1:] else None for words in told]
    rows = pa.table({"k": ["x"] * len(told), "v": pa.array(values, pa.string())})
    done = effect(rows, ("k",), pa.chunked_array([[words[0] for words in told]]))
    assert [row["v"] for row in done.written.to_pylist()] == ([] if value == "gone" else [value])
    assert done.deleted.num_rows == (value == "gone")


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
