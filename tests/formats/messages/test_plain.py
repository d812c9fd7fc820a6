"""Messages that are one value."""

import pyarrow as pa
import pytest

from headrace.errors import BuildError
from headrace.formats.messages import Raw, String

VALUES = [b"a", None, b"\xff", b"", "ä".encode()]


def test_bytes_come_as_they_are() -> None:
    schema = Raw().row_schema(None)
    result = Raw().decoder(schema)(VALUES)
    assert result.batch.to_pylist() == [{"value": value} for value in VALUES]
    assert result.places.tolist() == [0, 1, 2, 3, 4]
    assert result.bad == ()
    assert Raw().encoder(schema)(result.batch).to_pylist() == VALUES


def test_texts_are_utf8() -> None:
    schema = String().row_schema(pa.schema({"line": pa.string()}))
    result = String().decoder(schema)(VALUES)
    assert result.batch.to_pylist() == [{"line": text} for text in ("a", None, "", "ä")]
    assert result.places.tolist() == [0, 1, 3, 4]
    assert [(bad.place, bad.cause[:24]) for bad in result.bad] == [(2, "the message is not UTF-8")]
    assert String().encoder(schema)(result.batch).to_pylist() == [b"a", None, b"", "ä".encode()]


def test_bytes_of_a_fixed_size_are_judged() -> None:
    schema = Raw().row_schema(pa.schema({"id": pa.binary(2)}))
    result = Raw().decoder(schema)([b"ab", b"abc", None])
    assert result.batch["id"].to_pylist() == [b"ab", None]
    assert [bad.place for bad in result.bad] == [1]


@pytest.mark.parametrize("kind", [Raw, String])
@pytest.mark.parametrize("columns", [{}, {"n": pa.int64()}, {"a": pa.string(), "b": pa.binary()}])
def test_other_columns_are_refused(kind: type[Raw] | type[String], columns: dict) -> None:
    with pytest.raises(BuildError, match="is one column of"):
        kind().row_schema(pa.schema(columns))


def test_no_messages_are_no_rows() -> None:
    assert Raw().decoder(Raw().row_schema(None))([]).batch.num_rows == 0
