"""Reading CSV: headers, quotes, and records that are no rows."""

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import InputError
from headrace.formats import Decoded, format_named

SCHEMA = pa.schema({"n": pa.int64(), "s": pa.string(), "at": pa.timestamp("us", tz="UTC")})


def read(content: bytes, path: Path) -> Decoded:
    path.write_bytes(content)
    (decoded,) = format_named("csv").read(path, SCHEMA)
    return decoded


@pytest.mark.parametrize(
    "record", [b"x,a,", b"1,a", b"1,a,,4", b"1.5,a,", b"1,a,2025-01-01T00:00:00", b'1,"\xff",']
)
def test_a_bad_record_is_named_and_its_neighbours_are_kept(record: bytes, tmp_path: Path) -> None:
    decoded = read(b"n,s,at\n1,a,\n" + record + b"\n3,c,2025-01-01T00:00:00Z\n", tmp_path / "f")
    assert decoded.batch["n"].to_pylist() == [1, 3]
    assert decoded.lines.tolist() == [2, 4]
    assert [bad.line for bad in decoded.bad] == [3]


def test_line_breaks_in_quotes_belong_to_their_record(tmp_path: Path) -> None:
    decoded = read(b'at,s,n\n,"a\nb",1\n,"""",x\n,c,3\n', tmp_path / "f")
    assert decoded.batch["s"].to_pylist() == ["a\nb", "c"]
    assert decoded.lines.tolist() == [2, 5]
    assert [(bad.line, bad.text) for bad in decoded.bad] == [(4, ',"""",x')]


def test_columns_are_found_by_the_header_and_others_are_ignored(tmp_path: Path) -> None:
    decoded = read(b"\xef\xbb\xbfother,s,at,n\nq,a,,1\n", tmp_path / "f")
    assert decoded.batch.to_pylist() == [{"n": 1, "s": "a", "at": None}]


def test_nothing_is_null_and_an_empty_string_is_not(tmp_path: Path) -> None:
    decoded = read(b'n,s,at\n1,,\n2,"",\n', tmp_path / "f")
    assert decoded.batch["s"].to_pylist() == [None, ""]


def test_an_empty_line_is_nothing_unless_there_is_one_column(tmp_path: Path) -> None:
    decoded = read(b"n,s,at\n\n1,a,\n\r\n", tmp_path / "f")
    assert decoded.lines.tolist() == [3]
    (tmp_path / "f").write_bytes(b"s\na\n\n b\n")
    (one,) = format_named("csv").read(tmp_path / "f", pa.schema({"s": pa.string()}))
    assert one.batch["s"].to_pylist() == ["a", None, " b"]


def test_a_missing_column_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"f has no column at; it has n, s"):
        read(b"n,s\n1,a\n", tmp_path / "f")


def test_records_across_blocks_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.formats.lines._BLOCK_BYTES", 16)
    path = tmp_path / "f"
    path.write_bytes(
        b"n,s,at\n" + b"".join(b'%d,"a long\ntext, %d",\n' % (n, n) for n in range(20))
    )
    parts = list(format_named("csv").read(path, SCHEMA))
    assert [n for part in parts for n in part.batch["n"].to_pylist()] == list(range(20))
    assert [int(line) for part in parts for line in part.lines] == [2 + 2 * n for n in range(20)]
