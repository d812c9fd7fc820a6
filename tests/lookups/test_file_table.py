"""Tables in files: how they are read, and what becomes of them when the files change."""

import logging
import os
import pickle
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace._runtime.joins.lookup import files
from headrace._runtime.joins.lookup.columns import file_schema
from headrace._runtime.joins.lookup.files import HeldTable, held
from headrace._runtime.lifecycle import close_all
from headrace.errors import BuildError, InputError, SchemaError
from headrace.formats import format_named
from headrace.lookups import FileTable

RATES = pa.schema({"currency": pa.string(), "rate": pa.float64()})
SECOND = timedelta(seconds=1)


class Clock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


class Watched:
    """A table that is looked at every second of a clock of its own."""

    def __init__(self, path: Path, schema: pa.Schema = RATES, **options: Any) -> None:
        self.clock = Clock()
        table = FileTable(path, key=options.pop("key", "currency"), check_every=SECOND, **options)
        self.held = HeldTable(table, schema, self.clock)

    def rows(self, *, later: float = 0) -> list[dict[str, Any]]:
        self.clock.at += later
        found = self.held.index().rows.to_pylist()
        return sorted(found, key=str)

    def after_two_looks(self) -> list[dict[str, Any]]:
        self.rows(later=1)
        return self.rows(later=1)


def write(path: Path, **rates: float) -> None:
    lines = [f"{name},{rate}" for name, rate in rates.items()]
    path.write_text("\n".join(["currency,rate", *lines, ""]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rates.csv"
    write(path, EUR=1.0, NOK=11.5)
    return path


EUR, NOK = {"currency": "EUR", "rate": 1.0}, {"currency": "NOK", "rate": 11.5}


class TestChange:
    def test_a_change_is_taken_in_when_two_looks_have_found_the_same(self, path: Path) -> None:
        watched = Watched(path)
        assert watched.rows() == [EUR, NOK]
        write(path, EUR=1.0)
        assert watched.rows(later=0.9) == [EUR, NOK], "it is not looked at yet"
        assert watched.rows(later=0.1) == [EUR, NOK], "it may be being written"
        assert watched.rows(later=1) == [EUR]

    def test_a_file_that_was_written_long_ago_is_taken_in_at_once(self, path: Path) -> None:
        watched = Watched(path)
        assert watched.rows() == [EUR, NOK]
        new = path.with_suffix(".new")
        write(new, EUR=1.0)
        os.utime(new, (1_700_000_000, 1_700_000_000))
        new.rename(path)
        assert watched.rows(later=1) == [EUR]

    def test_a_file_that_still_grows_is_left_alone(self, path: Path) -> None:
        watched = Watched(path)
        watched.rows()
        for size in range(1, 4):
            write(path, **{f"C{n}": 1.0 for n in range(size)})
            assert watched.rows(later=1) == [EUR, NOK]
        assert len(watched.rows(later=1)) == 3

    def test_another_file_of_the_same_size_and_time_in_its_place_is_a_change(
        self, path: Path, tmp_path: Path
    ) -> None:
        watched = Watched(path)
        watched.rows()
        write(tmp_path / "new", EUR=2.0, NOK=11.5)
        stat = path.stat()
        os.utime(tmp_path / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
        (tmp_path / "new").rename(path)
        assert watched.after_two_looks() == [{**EUR, "rate": 2.0}, NOK]

    def test_files_of_a_directory_come_change_and_go(self, tmp_path: Path) -> None:
        write(tmp_path / "a.csv", EUR=1.0)
        for other in (".hidden.csv", "_SUCCESS.csv", "notes.txt", "empty.csv"):
            (tmp_path / other).write_text("" if other == "empty.csv" else "nonsense")
        watched = Watched(tmp_path, format="csv")
        assert watched.rows() == [EUR]
        write(tmp_path / "b.csv", NOK=11.5)
        assert watched.after_two_looks() == [EUR, NOK]
        (tmp_path / "a.csv").unlink()
        assert watched.after_two_looks() == [NOK]

    def test_a_table_that_is_not_watched_is_read_once(self, path: Path) -> None:
        held = HeldTable(FileTable(path, key="currency", check_every=None), RATES, Clock())
        assert held.index().rows.num_rows == 2
        path.unlink()
        assert held.index().rows.num_rows == 2


class TestDamage:
    @pytest.mark.parametrize(
        "content",
        ["currency,rate\nEUR,much\n", "currency\nEUR\n", "currency,rate\nEUR\n", "", None],
    )
    def test_rows_stay_what_they_were_and_it_is_told_once(
        self, path: Path, caplog: pytest.LogCaptureFixture, content: str | None
    ) -> None:
        watched = Watched(path)
        watched.rows()
        path.unlink() if content is None else path.write_text(content)
        with caplog.at_level(logging.WARNING, "headrace"):
            for _ in range(100):
                assert watched.rows(later=1) == [EUR, NOK]
        (record,) = caplog.records
        assert "rates.csv cannot be read as it is now" in record.getMessage()
        write(path, NOK=11.5)
        assert watched.after_two_looks() == [NOK]

    def test_half_a_parquet_file_is_never_used(self, tmp_path: Path) -> None:
        path = tmp_path / "rates.parquet"
        pq.write_table(pa.Table.from_pylist([EUR, NOK], RATES), path)
        whole = path.read_bytes()
        watched = Watched(path)
        assert watched.rows() == [EUR, NOK]
        path.write_bytes(whole[: len(whole) // 2])
        assert watched.after_two_looks() == [EUR, NOK]
        pq.write_table(pa.Table.from_pylist([NOK], RATES), path)
        assert watched.after_two_looks() == [NOK]

    def test_what_cannot_be_read_is_not_read_at_every_look(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watched = Watched(path)
        watched.rows()
        path.write_text("nonsense")
        reads: list[Any] = []
        read = HeldTable._read
        monkeypatch.setattr(HeldTable, "_read", lambda *given: reads.append(0) or read(*given))
        for _ in range(100):
            watched.rows(later=1)
        assert len(reads) == 4

    def test_files_that_change_while_they_are_read_are_read_again(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, changes = HeldTable._read, [lambda: write(path, NOK=11.5)]

        def meddled(held: HeldTable, seen: Any) -> Any:
            index = read(held, seen)
            if changes:
                changes.pop()()
            return index

        monkeypatch.setattr(HeldTable, "_read", meddled)
        watched = Watched(path)
        assert watched.rows() == [NOK]
        write(path, EUR=1.0)
        changes.append(lambda: write(path, EUR=1.0, NOK=11.5))
        assert watched.after_two_looks() == [NOK]
        assert watched.after_two_looks() == [EUR, NOK]

    def test_the_first_reading_must_succeed(self, tmp_path: Path, path: Path) -> None:
        with pytest.raises(InputError, match="No such file"):
            Watched(tmp_path / "none.csv").rows()
        with pytest.raises(InputError, match=r"holds no such files \(.parquet, .pq\)"):
            Watched(tmp_path).rows()
        path.write_text("currency,rate\nEUR,much\n")
        with pytest.raises(InputError, match=r"rates.csv, line 2: .*much"):
            Watched(path).rows()
        path.write_text("currency\nEUR\n")
        with pytest.raises(InputError, match="has no column rate"):
            Watched(path).rows()

    def test_one_that_changes_all_the_time_is_refused(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks = iter(range(99))
        monkeypatch.setattr(files, "_seen_or_none", lambda _: ((str(next(looks)), 0, 0, 0),))
        with pytest.raises(InputError, match="changes all the time"):
            Watched(path).rows()


class TestColumns:
    def test_types_of_csv_are_told_from_all_files(self, tmp_path: Path) -> None:
        head = "id,price,name,day,paid,note\n"
        (tmp_path / "a.csv").write_text(head + '1,2,"",2025-01-31,true,\n,,,,,\n')
        (tmp_path / "b.csv").write_text(head + '2,2.5,Ada,2025-02-01,false,"a, b"\n')
        table = FileTable(tmp_path, key="id", format="csv")
        schema = file_schema(table)
        types = [pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.bool_(), pa.string()]
        assert schema.types == types
        rows = HeldTable(table, schema).index().rows.to_pylist()
        assert sorted(rows, key=lambda row: row["id"]) == [
            {
                "id": 1,
                "price": 2.0,
                "name": "",
                "day": date(2025, 1, 31),
                "paid": True,
                "note": None,
            },
            {
                "id": 2,
                "price": 2.5,
                "name": "Ada",
                "day": date(2025, 2, 1),
                "paid": False,
                "note": "a, b",
            },
        ]

    def test_times_of_csv_are_in_microseconds_and_those_of_json_are_texts(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "t.csv").write_text("id,at,on\n1,2025-01-01T10:00:00.25Z,10:30:00\n")
        table = FileTable(tmp_path / "t.csv", key="id")
        schema = file_schema(table)
        assert schema.types[1:] == [pa.timestamp("us", "UTC"), pa.time64("us")]
        assert HeldTable(table, schema).index().rows["at"].to_pylist() == [
            datetime(2025, 1, 1, 10, 0, 0, 250_000, tzinfo=UTC)
        ]
        (tmp_path / "t.json").write_text('{"id": 1, "at": "2025-01-01T10:00:00Z"}')
        table = FileTable(tmp_path / "t.json", key="id")
        (at,) = HeldTable(table, file_schema(table)).index().rows["at"].to_pylist()
        assert at == "2025-01-01T10:00:00Z"

    def test_json_lines_and_parquet(self, tmp_path: Path) -> None:
        (tmp_path / "t.jsonl").write_text('{"id": 1, "tags": ["a"]}\n{"id": 2, "tags": null}\n')
        table = FileTable(tmp_path / "t.jsonl", key="id")
        schema = file_schema(table)
        assert schema == pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string())})
        rows = HeldTable(table, schema).index().rows
        assert sorted(rows.to_pydict()["id"]) == [1, 2]
        encoded = pa.table({"id": pa.array(["a", "b", "a"]).dictionary_encode(), "n": [1, 2, 3]})
        pq.write_table(encoded, tmp_path / "t.parquet")
        table = FileTable(tmp_path / "t.parquet", key="id")
        assert file_schema(table).field("id").type == pa.string()
        assert sorted(HeldTable(table, file_schema(table)).index().rows["n"].to_pylist()) == [
            1,
            2,
            3,
        ]

    def test_what_cannot_be_told_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("id,note\n1,\n")
        with pytest.raises(SchemaError, match=r"type of 'note' .* pass schema="):
            file_schema(FileTable(tmp_path / "t.csv", key="id"))
        with pytest.raises(BuildError, match=r"No such file.* Pass schema="):
            file_schema(FileTable(tmp_path / "none.csv", key="id"))
        (tmp_path / "bad.parquet").write_text("nonsense")
        with pytest.raises(BuildError, match="cannot be told from its files"):
            file_schema(FileTable(tmp_path / "bad.parquet", key="id"))


class TestOptions:
    @pytest.mark.parametrize(
        ("name", "format"),
        [("t.csv", "csv"), ("t.PQ", "parquet"), ("t.json", "jsonl"), ("t", "parquet")],
    )
    def test_the_format_follows_from_the_ending(self, name: str, format: str) -> None:
        assert FileTable(name, key="id").format == format
        assert format_named(format).name == format

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"key": ()}, "names of columns"),
            ({"key": 5}, "names of columns"),
            ({"key": ["a", "a"]}, "twice"),
            ({"key": "a", "columns": "b"}, "names of columns"),
            ({"key": "a", "format": "xml"}, "'csv', 'jsonl', 'parquet'"),
            ({"key": "a", "check_every": 1}, "timedelta"),
        ],
    )
    def test_options_are_checked(self, options: Any, text: str) -> None:
        with pytest.raises(BuildError, match=text):
            FileTable("t.csv", **options)

    def test_a_path_is_local(self) -> None:
        with pytest.raises(BuildError, match="local path"):
            FileTable("s3://bucket/t.csv", key="id")

    def test_copies_share_what_a_process_holds_until_functions_are_closed(self, path: Path) -> None:
        table = FileTable(path, key="currency")
        first = held(table, RATES)
        assert held(pickle.loads(pickle.dumps(table)), RATES) is first
        assert held(FileTable(path, key="rate"), RATES) is not first
        close_all()
        assert held(table, RATES) is not first
