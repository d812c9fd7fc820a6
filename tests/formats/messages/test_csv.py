"""CSV messages: one record each, whatever quotes and line breaks do to their neighbours."""

import csv
import io

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import BuildError
from headrace.formats.messages import Csv
from headrace.formats.messages.format import DecodedMessages
from tests.examples import examples

SCHEMA = pa.schema({"n": pa.int64(), "s": pa.string()})
ODD = [b"", b"1", b"1,a,b", b'1,"', b'",1', b'1,"a\nb"', b"1,a\n2,b", b'1,"a""b"', b'1,""', b"x,y"]
messages = st.lists(st.sampled_from([b"1,a", b'2,"b"', b"3,", *ODD]) | st.none(), max_size=20)


def decoded(found: list[bytes | None], schema: pa.Schema = SCHEMA) -> DecodedMessages:
    return Csv().decoder(schema)(found)


def row(message: bytes | None) -> dict[str, object] | None:
    """What Python's reader makes of one message; None if it is no record."""
    try:
        (record,) = csv.reader(io.StringIO((message or b"").decode(), newline=""), strict=True)
        number, text = record
        null = not text and not (message or b"").endswith(b'""')
        return {"n": int(number) if number else None, "s": None if null else text}
    except (csv.Error, ValueError):
        return None


@examples(15)
@given(messages)
@example([b'1,"', b"2,b", b'",3'])
@example([b"1,a\n2,b", b"", b"3,c"])
@example([b"1,a", b'2,"b'])
@example([b'1,"a\nb"', b"2,c", b'3,"d\ne"', b"x,"])
def test_all_at_once_is_each_alone(found: list[bytes | None]) -> None:
    result = decoded(found)
    rows = [row(message) for message in found]
    assert result.places.tolist() == [place for place, row in enumerate(rows) if row is not None]
    assert result.batch.to_pylist() == [row for row in rows if row is not None]
    assert [bad.place for bad in result.bad] == [n for n, row in enumerate(rows) if row is None]


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (None, "tombstone"),
        (b"", "is empty"),
        (b"x,a", "field 'n': .*int64: invalid value 'x'"),
        (b'1,"\xff"', "field 's': .*UTF8"),
        (b"1", "Expected 2 columns, got 1"),
        (b"1,a\n2,b", "exactly one record"),
    ],
)
def test_the_cause_says_what_is_wrong(message: bytes | None, cause: str) -> None:
    (bad,) = decoded([b"1,a", message, b"2,b"]).bad
    assert bad.place == 1
    with pytest.raises(ValueError, match=cause):
        raise ValueError(bad.cause)


def test_marks_and_line_ends_around_a_record_do_not_count() -> None:
    result = decoded([b"\xef\xbb\xbf1,a", b"2,b\r\n", b"\xef\xbb\xbf3,c\n"])
    assert result.batch.to_pylist() == [
        {"n": n, "s": s} for n, s in zip((1, 2, 3), "abc", strict=True)
    ]


def test_nothing_is_a_null_where_there_is_one_column() -> None:
    result = decoded([b"", b"a", None, b'""'], pa.schema({"s": pa.string()}))
    assert result.batch["s"].to_pylist() == [None, "a", ""]
    assert [bad.place for bad in result.bad] == [2]


def test_the_delimiter_is_free_as_far_as_it_parts_values() -> None:
    batch = pa.record_batch({"n": [1], "s": ["a|b"]})
    given = Csv(delimiter="|")
    assert given.encoder(SCHEMA)(batch).to_pylist() == [b'1|"a|b"']
    assert given.decoder(SCHEMA)([b'1|"a|b"']).batch.to_pylist() == batch.to_pylist()
    for refused in ("", ",,", "-", "1", "\n", '"', "ä"):
        with pytest.raises(BuildError, match="delimiter="):
            Csv(delimiter=refused)
