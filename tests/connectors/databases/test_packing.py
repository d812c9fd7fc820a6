"""Rows of a binary COPY: against psycopg's own packing of the same values, byte for byte."""

import struct
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pyarrow as pa
import pytest

from headrace.connectors.databases.packing import rows
from headrace.connectors.databases.postgres_types import KINDS, encode

#: staging type -> values
SAMPLES: dict[str, list[Any]] = {
    "int2": [0, -1, None, 2**15 - 1],
    "int4": [None, -(2**31), 7, 0],
    "int8": [2**63 - 1, None, -(2**63), 0],
    "float4": [1.5, None, -0.0, 3.25],
    "float8": [0.1, float("inf"), None, -2.0],
    "bool": [True, None, False, True],
    "text": ["", None, "ü✓", "a b"],
    "bytea": [b"\0\1", b"", None, b"x"],
    "date": [date(1999, 12, 31), None, date(2025, 2, 28), date(1, 1, 1)],
    "time": [time(), None, time(23, 59, 59, 999_999), time(1)],
    "timestamp": [datetime(1999, 1, 1), None, datetime(2025, 1, 1, 1, 2, 3, 4), datetime(1, 1, 1)],
    "timestamptz": [datetime(2025, 1, 1, tzinfo=UTC), None, datetime(1970, 1, 1, tzinfo=UTC), None],
    "uuid": [bytes(range(16)), None, bytes(16), b"\xff" * 16],
    "int8[]": [[1, None, 3], [], None, [4]],
    "text[]": [["a", "", None], None, ["ü"], []],
}


def field(value: Any, staging: str) -> bytes:
    """A value as it stands in a row: what psycopg's dumpers make of it."""
    psycopg = pytest.importorskip("psycopg")
    from psycopg import pq
    from psycopg.adapt import PyFormat, Transformer
    from psycopg.types.numeric import Int8
    from psycopg.types.string import StrBinaryDumper

    if value is None:
        return struct.pack(">i", -1)
    if staging == "int8[]":
        value = [None if one is None else Int8(one) for one in value]
    transformer = Transformer()
    oid = psycopg.adapters.types[staging.removesuffix("[]")]
    if staging.endswith("[]"):
        packed = _array(value, oid.oid, staging.removesuffix("[]"))
    elif staging == "text":
        packed = bytes(StrBinaryDumper(str).dump(value))
    elif staging == "uuid":
        packed = value
    else:
        transformer.set_dumper_types([oid.oid], pq.Format.BINARY)
        packed = bytes(transformer.dump_sequence([value], [PyFormat.BINARY])[0] or b"")
    return struct.pack(">i", len(packed)) + packed


def _array(values: list[Any], oid: int, staging: str) -> bytes:
    if not values:
        return struct.pack(">iii", 0, 0, oid)
    head = struct.pack(">iiiii", 1, 1, oid, len(values), 1)
    return head + b"".join(field(value, staging) for value in values)


def column(staging: str, values: list[Any]) -> pa.Array:
    inner = KINDS[staging.removesuffix("[]")].arrow
    return pa.array(values, pa.list_(inner) if staging.endswith("[]") else inner)


@pytest.mark.parametrize("staging", SAMPLES)
def test_a_column_is_packed_as_psycopg_does(staging: str) -> None:
    values = SAMPLES[staging]
    wanted = b"".join(struct.pack(">h", 1) + field(value, staging) for value in values)
    assert rows([encode(column(staging, values), staging)], len(values)) == wanted


def test_columns_stand_side_by_side_whatever_slice_of_a_batch_they_are() -> None:
    names = list(SAMPLES)
    columns = [column(name, [None, *SAMPLES[name], None]).slice(1, 4) for name in names]
    wanted = b"".join(
        struct.pack(">h", len(names)) + b"".join(field(SAMPLES[name][row], name) for name in names)
        for row in range(4)
    )
    packed = rows([encode(one, name) for one, name in zip(columns, names, strict=True)], 4)
    assert packed == wanted


def test_lengths_of_time_are_microseconds_without_days_and_months() -> None:
    values = [timedelta(days=2, microseconds=1), None, timedelta(seconds=-1)]
    packed = rows([encode(pa.array(values, pa.duration("us")), "interval")], 3)
    first = struct.pack(">hiqii", 1, 16, 2 * 86_400_000_000 + 1, 0, 0)
    assert packed == first + struct.pack(">hi", 1, -1) + struct.pack(
        ">hiqii", 1, 16, -1_000_000, 0, 0
    )


@pytest.mark.parametrize(
    ("array", "staging", "words"),
    [
        (pa.array(["fine", "a\0b"]), "text", "NUL"),
        (pa.array([["a\0b"]]), "text[]", "NUL"),
        (pa.array([["a", "a\0"]]).slice(0, 1), "text[]", "NUL"),
        (pa.array([-(2**63)], pa.timestamp("us")), "timestamp", "further away"),
        (pa.array([-(2**31)], pa.date32()), "date", "further away"),
    ],
)
def test_values_that_the_server_would_take_for_others_are_refused(
    array: pa.Array, staging: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        encode(array, staging)


def test_no_rows_are_no_bytes() -> None:
    assert rows([encode(column(name, []), name) for name in SAMPLES], 0) == b""
