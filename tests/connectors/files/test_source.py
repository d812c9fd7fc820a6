"""The file source: files by number, and errors that name the file and the line."""

import os
import pickle
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connectors.files import FileSource
from headrace.errors import BuildError, CheckpointDamaged, InputError


@dataclass
class Order:
    n: int
    name: str


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


def put(path: Path, *numbers: int) -> None:
    path.write_text("".join(f'{{"n": {n}, "name": "row {n}"}}\n' for n in numbers))


def source(inbox: Path, **options: Any) -> FileSource:
    return FileSource(inbox, format="jsonl", schema=Order, **options)


def read(source: FileSource, start: int, end: int, notes: Path) -> list[int]:
    return [
        n for part in source.read("files", start, end, notes) for n in part.batch["n"].to_pylist()
    ]


def test_a_bounded_source_reads_the_files_in_the_order_of_their_names(
    inbox: Path, notes: Path
) -> None:
    put(inbox / "b.jsonl", 3)
    put(inbox / "a.jsonl", 1, 2)
    orders = source(inbox)
    span = orders.enumerator(notes).spans()["files"]
    assert (span.first, span.end, span.finished) == (0, 2, True)
    assert read(orders, 0, 2, notes) == [1, 2, 3]
    assert read(orders, 1, 2, notes) == [3]


def test_rows_say_which_file_and_line_they_come_from(inbox: Path, notes: Path) -> None:
    put(inbox / "a.jsonl", 1, 2)
    orders = source(inbox)
    orders.enumerator(notes)
    (part,) = orders.read("files", 0, 1, notes)
    assert part.partition == str(inbox / "a.jsonl")
    assert part.offsets.tolist() == [1, 2]


def test_hidden_empty_and_foreign_files_are_not_read(inbox: Path, notes: Path) -> None:
    put(inbox / "a.jsonl", 1)
    for name in (".hidden.jsonl", "_started.jsonl", "notes.txt"):
        put(inbox / name, 9)
    (inbox / "empty.jsonl").touch()
    (inbox / "folder.jsonl").mkdir()
    orders = source(inbox)
    assert orders.enumerator(notes).spans()["files"].end == 1
    assert read(orders, 0, 1, notes) == [1]


@pytest.mark.parametrize("pattern", ["a.log", "*.log", "../in/?.log"])
def test_a_path_may_be_a_file_or_a_pattern(pattern: str, inbox: Path, notes: Path) -> None:
    put(inbox / "a.log", 1)
    orders = source(inbox / pattern)
    orders.enumerator(notes)
    assert read(orders, 0, 1, notes) == [1]


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_other_formats_are_read_too(format: str, inbox: Path, notes: Path) -> None:
    if format == "parquet":
        pq.write_table(pa.table({"n": [1], "name": ["x"]}), inbox / "a.parquet")
    else:
        (inbox / "a.csv").write_text("name,n\nx,1\n")
    orders = FileSource(inbox, format=format, schema=Order)
    orders.enumerator(notes)
    assert read(orders, 0, 1, notes) == [1]


@pytest.mark.parametrize("harm", ["append", "touch", "remove"])
def test_a_file_that_changed_or_vanished_fails_by_name(harm: str, inbox: Path, notes: Path) -> None:
    path = inbox / "a.jsonl"
    put(path, 1)
    orders = source(inbox)
    orders.enumerator(notes)
    if harm == "append":
        put(path, 1, 2)
    elif harm == "touch":
        os.utime(path, ns=(1, 1))
    else:
        path.unlink()
    with pytest.raises(InputError, match=r"a\.jsonl (changed|is gone)"):
        read(orders, 0, 1, notes)


def test_a_file_that_changes_while_it_is_read_fails_by_name(inbox: Path, notes: Path) -> None:
    put(inbox / "a.jsonl", 1)
    orders = source(inbox)
    orders.enumerator(notes)
    parts = orders.read("files", 0, 1, notes)
    next(parts)
    put(inbox / "a.jsonl", 1, 2)
    with pytest.raises(InputError, match="changed"):
        list(parts)


def test_a_bad_line_fails_with_file_and_line(inbox: Path, notes: Path) -> None:
    (inbox / "a.jsonl").write_text('{"n": 1, "name": "x"}\n{"n": "one"}\n')
    orders = source(inbox)
    orders.enumerator(notes)
    with pytest.raises(InputError, match=r"a\.jsonl, line 2: .*\"one\"") as caught:
        read(orders, 0, 1, notes)
    assert "dead_letter" in str(caught.value)


def test_a_bad_line_becomes_a_dead_letter_if_the_user_says_so(inbox: Path, notes: Path) -> None:
    (inbox / "a.jsonl").write_text('{"n": 1, "name": "x"}\nbroken\n{"n": 3, "name": "z"}\n')
    orders = source(inbox, on_error="dead_letter")
    orders.enumerator(notes)
    (part,) = orders.read("files", 0, 1, notes)
    assert part.batch["n"].to_pylist() == [1, 3]
    assert part.offsets.tolist() == [1, 3]
    (dead,) = part.dead
    assert (dead.partition, dead.offset, dead.payload) == (str(inbox / "a.jsonl"), 2, "broken")
    assert dead.cause


def test_a_file_of_nothing_but_bad_lines_is_dead_letters(inbox: Path, notes: Path) -> None:
    (inbox / "a.jsonl").write_text("broken\nbroken too\n")
    orders = source(inbox, on_error="dead_letter")
    orders.enumerator(notes)
    (part,) = orders.read("files", 0, 1, notes)
    assert part.batch.num_rows == 0
    assert part.batch.schema == orders.schema
    assert [dead.offset for dead in part.dead] == [1, 2]


def test_a_bounded_source_without_files_is_an_error(inbox: Path, notes: Path) -> None:
    with pytest.raises(InputError, match="no files to read"):
        source(inbox).enumerator(notes)
    with pytest.raises(InputError, match="no files to read"):
        source(inbox / "nowhere").enumerator(notes)


def test_files_keep_their_numbers_over_a_restart_and_new_ones_come_behind(
    inbox: Path, notes: Path
) -> None:
    put(inbox / "b.jsonl", 1)
    source(inbox).enumerator(notes)
    put(inbox / "a.jsonl", 2)
    orders = source(inbox)
    assert orders.enumerator(notes).spans()["files"].end == 2
    assert read(orders, 0, 2, notes) == [1, 2]


def test_a_checkpoint_that_was_begun_anew_is_not_read_from_memory(inbox: Path, notes: Path) -> None:
    put(inbox / "a.jsonl", 1)
    orders = source(inbox)
    orders.enumerator(notes)
    assert read(orders, 0, 1, notes) == [1]
    (notes / "files.log").unlink()
    (inbox / "a.jsonl").unlink()
    put(inbox / "b.jsonl", 2)
    orders.enumerator(notes)
    assert read(orders, 0, 1, notes) == [2]


def test_positions_that_the_log_does_not_have_are_damage(inbox: Path, notes: Path) -> None:
    put(inbox / "a.jsonl", 1)
    orders = source(inbox)
    orders.enumerator(notes)
    with pytest.raises(CheckpointDamaged, match=r"files\.log has 1 files"):
        read(orders, 0, 2, notes)


def test_the_source_says_how_it_may_be_cut(inbox: Path) -> None:
    orders = pickle.loads(pickle.dumps(source(inbox, max_files_per_epoch=3)))
    assert (orders.row_positions, orders.splittable, orders.max_positions) == (False, True, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"max_files_per_epoch": 0},
        {"on_error": "ignore"},
        {"poll_interval": timedelta(0)},
        {"format": "xml"},
        {"path": "s3://bucket/in"},
        {"schema": 3},
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], inbox: Path) -> None:
    with pytest.raises(BuildError):
        FileSource(**{"path": inbox, "format": "jsonl", "schema": Order, **options})
