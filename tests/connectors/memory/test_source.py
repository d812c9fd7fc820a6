"""Lists as sources."""

import pickle
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.connectors.memory import Cut, Fail, MemorySource
from headrace.errors import BuildError, EngineError, SchemaError

AT = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass
class Order:
    n: int
    at: datetime


ORDERS = [Order(n, AT) for n in range(5)]


def read(
    source: MemorySource, start: int, end: int, directory: Path, partition: str = "0"
) -> list[int]:
    return [
        n
        for part in source.read(partition, start, end, directory)
        for n in part.batch["n"].to_pylist()
    ]


def test_dataclasses_bring_their_schema(tmp_path: Path) -> None:
    source = MemorySource(ORDERS)
    assert source.schema == pa.schema({"n": pa.int64(), "at": pa.timestamp("us", tz="UTC")})
    assert read(source, 1, 4, tmp_path) == [1, 2, 3]
    assert source.enumerator(tmp_path).spans()["0"].finished


@pytest.mark.parametrize("rows", [[{"n": 1}, {"n": 2}], pa.table({"n": [1, 2]})])
def test_dictionaries_and_tables_are_rows_too(rows: Any, tmp_path: Path) -> None:
    assert read(MemorySource(rows), 0, 2, tmp_path) == [1, 2]


def test_a_declared_schema_wins_over_the_found_one() -> None:
    assert MemorySource([{"n": 1}], {"n": float}).schema == pa.schema({"n": pa.float64()})
    assert MemorySource(pa.table({"n": [1]}), {"n": float}).schema == pa.schema({"n": pa.float64()})


def test_partitions_are_lines_of_their_own(tmp_path: Path) -> None:
    source = MemorySource(partitions=[ORDERS[:2], [], ORDERS[2:]])
    spans = source.enumerator(tmp_path).spans()
    assert {name: span.end for name, span in spans.items()} == {"0": 2, "1": 0, "2": 3}
    assert read(source, 0, 3, tmp_path, "2") == [2, 3, 4]


def test_cuts_are_positions_and_no_rows(tmp_path: Path) -> None:
    source = MemorySource([Cut(), *ORDERS[:2], Cut(), Cut(), *ORDERS[2:], Cut()])
    span = source.enumerator(tmp_path).spans()["0"]
    assert (span.end, span.cuts) == (5, (2,))


@pytest.mark.parametrize("times", [1, 3])
def test_a_failure_happens_so_often_and_no_more(times: int, tmp_path: Path) -> None:
    source = MemorySource([*ORDERS[:2], Fail("on purpose", times), *ORDERS[2:]])
    assert read(source, 0, 2, tmp_path) == [0, 1]
    for _ in range(times):
        with pytest.raises(EngineError, match="on purpose"):
            read(source, 1, 4, tmp_path)
    copy = pickle.loads(pickle.dumps(source))
    assert read(copy, 1, 4, tmp_path) == [1, 2, 3]


def test_a_failure_at_the_end_belongs_to_the_last_row(tmp_path: Path) -> None:
    source = MemorySource([*ORDERS, Fail()])
    with pytest.raises(EngineError):
        read(source, 4, 5, tmp_path)


def test_unbounded_never_says_that_it_ends(tmp_path: Path) -> None:
    assert not MemorySource(ORDERS, bounded=False).enumerator(tmp_path).spans()["0"].finished


@pytest.mark.parametrize(
    ("rows", "schema", "message"),
    [
        ([], None, "needs schema="),
        ([{"n": 1}, {"m": 2}], {"n": int}, r"row 1 has no field n; the fields are n \(int64\)"),
        ([{"n": 1, "m": 2}], {"n": int}, "row 0 has unknown fields: m"),
        ([{"n": 1}, {"n": "two"}], {"n": int}, "'n' is int64, but row 1 has 'two'"),
        ([3], {"n": int}, "row 0 is 3"),
        ([Order(1, datetime(2025, 1, 1))], None, "'at' of row 0 is the naive datetime"),
        (pa.table({"m": [1]}), {"n": int}, "does not have the columns"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: Any, schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        MemorySource(rows, schema)


@pytest.mark.parametrize(
    "arguments", [{}, {"rows": [], "partitions": []}, {"rows": "text"}, {"rows": 3}]
)
def test_arguments_that_cannot_work_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(BuildError):
        MemorySource(**arguments)
    with pytest.raises(BuildError):
        Fail(times=0)


def test_records_may_have_timestamps_of_their_own(tmp_path: Path) -> None:
    moments = [AT + timedelta(microseconds=n) for n in range(5)]
    source = MemorySource([*ORDERS[:2], Cut(), *ORDERS[2:]], timestamps=moments)
    assert source.has_record_timestamps
    (part,) = source.read("0", 1, 4, tmp_path)
    first = int(AT.timestamp()) * 1_000_000
    assert part.timestamps is not None
    assert part.timestamps.tolist() == [first + 1, first + 2, first + 3]
    assert not MemorySource(ORDERS).has_record_timestamps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": ORDERS, "timestamps": [AT]}, "partition 0 has 5 rows and 1 timestamps"),
        ({"partitions": [ORDERS, []], "timestamps": [[AT] * 5]}, "each of the 2 partitions, not 1"),
        ({"rows": ORDERS[:1], "timestamps": [datetime(2025, 1, 1)]}, "datetimes with a time zone"),
        ({"rows": ORDERS[:1], "timestamps": [3]}, "datetimes with a time zone, not 3"),
    ],
)
def test_timestamps_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        MemorySource(**arguments)
