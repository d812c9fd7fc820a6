"""Reading JSON lines: what is a row, what is not, and at which line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headrace.formats import Decoded, format_named

SCHEMA = pa.schema({"n": pa.int64(), "at": pa.timestamp("us", tz="UTC"), "s": pa.string()})


def read(content: bytes, path: Path, schema: pa.Schema = SCHEMA) -> Decoded:
    path.write_bytes(content)
    return joined(list(format_named("jsonl").read(path, schema)))


def joined(parts: list[Decoded]) -> Decoded:
    return Decoded(
        pa.concat_batches([part.batch for part in parts]),
        np.concatenate([part.lines for part in parts]),
        tuple(bad for part in parts for bad in part.bad),
    )


@pytest.mark.parametrize(
    "line",
    [
        b'{"n": 1.5}',
        b'{"n": "1"}',
        b'{"n": 9223372036854775808}',
        b'{"at": 1735689600}',
        b'{"at": "2025-01-01T00:00:00"}',
        b'{"at": "yesterday"}',
        b'{"s": 1}',
        b'{"s": "\xff"}',
        b'{"n": 1}{"n": 2}',
        b'{"n": 1} trailing',
        b'{"n":',
        b"[1]",
        b"null",
        b"1",
        b"nonsense",
    ],
)
def test_a_bad_line_is_named_and_its_neighbours_are_kept(line: bytes, tmp_path: Path) -> None:
    good = [b'{"n": %d}' % n for n in range(5)]
    decoded = read(b"\n".join([*good[:3], line, *good[3:]]), tmp_path / "file")
    assert decoded.batch["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert decoded.lines.tolist() == [1, 2, 3, 5, 6]
    (bad,) = decoded.bad
    assert bad.line == 4
    assert bad.cause
    assert bad.text == line.decode("utf-8", "replace")


def test_objects_across_lines_are_not_made_up_for_by_two_on_one_line(tmp_path: Path) -> None:
    decoded = read(b'{"n":\n{"n": 1}}\n{"n": 2}{"n": 3}\n{"n": 4}\n', tmp_path / "file")
    assert decoded.batch["n"].to_pylist() == [4]
    assert [bad.line for bad in decoded.bad] == [1, 2, 3]


def test_absent_fields_are_null_and_unknown_ones_are_ignored(tmp_path: Path) -> None:
    decoded = read(b'{"n": 1, "other": {"deep": [1]}}\n{"s": null}\n', tmp_path / "file")
    assert decoded.batch.to_pylist() == [
        {"n": 1, "at": None, "s": None},
        {"n": None, "at": None, "s": None},
    ]


def test_blank_lines_count_but_are_no_rows(tmp_path: Path) -> None:
    decoded = read(b'\n{"n": 1}\r\n   \n\n{"n": 2}', tmp_path / "file")
    assert decoded.lines.tolist() == [2, 5]
    assert not decoded.bad


def test_offsets_of_zones_are_honoured(tmp_path: Path) -> None:
    decoded = read(
        b'{"at": "2025-01-01T01:00:00+01:00"}\n{"at": "2025-01-01T00:00:00Z"}', tmp_path / "f"
    )
    first, second = decoded.batch["at"].to_pylist()
    assert first == second


def test_nested_columns_with_dates_are_judged_line_by_line_too(tmp_path: Path) -> None:
    schema = pa.schema({"days": pa.list_(pa.date32())})
    decoded = read(
        b'{"days": ["2025-01-01"]}\n{"days": ["soon"]}\n[]\n{"days": 1}\n', tmp_path / "f", schema
    )
    assert decoded.lines.tolist() == [1]
    assert [bad.line for bad in decoded.bad] == [2, 3, 4]


def test_files_larger_than_a_block_keep_their_line_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.formats.lines._BLOCK_BYTES", 64)
    path = tmp_path / "file"
    lines = [b'{"n": %d}' % n if n % 7 else b"broken" for n in range(100)]
    path.write_bytes(b"\n".join(lines))
    parts = list(format_named("jsonl").read(path, SCHEMA))
    assert len(parts) > 5
    kept = [
        (int(line), n)
        for p in parts
        for line, n in zip(p.lines, p.batch["n"].to_pylist(), strict=True)
    ]
    assert kept == [(n + 1, n) for n in range(100) if n % 7]
    assert [bad.line for p in parts for bad in p.bad] == [n + 1 for n in range(0, 100, 7)]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert list(format_named("jsonl").read(tmp_path / "file", SCHEMA)) == []
