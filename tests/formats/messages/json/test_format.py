"""JSON messages: each is judged alone, whatever its neighbours are."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import BuildError
from headrace.formats.messages import Json
from headrace.formats.messages.format import DecodedMessages
from tests.examples import examples
from tests.formats.messages.oracle import json_row

SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "f": pa.float64(),
        "at": pa.timestamp("us", tz="UTC"),
        "s": pa.string(),
        "l": pa.list_(pa.int64()),
    }
)
NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)

values = st.one_of(
    st.none(),
    st.integers(-(2**65), 2**65),
    st.booleans(),
    st.sampled_from([1.5, 1e3]),
    st.text(st.characters(codec="utf-8"), max_size=4),
    st.sampled_from(
        [
            "2025-01-01T00:00:00Z",
            "2025-01-01T00:00:00",
            "2025-01-01T01:00:00.5+01:00",
            "2025-01-01T00:00:00.123456789Z",
            "2025-01-01T00:00:00.123456789",
        ]
    ),
    st.lists(st.none() | st.integers(-9, 9) | st.text(max_size=1), max_size=2),
    st.just({"n": 1}),
)
objects = st.dictionaries(st.sampled_from("n f at s l other".split()), values, max_size=3)
good = st.builds(lambda n, s: {"n": n, "s": s}, st.integers(-9, 9), st.text("ab", max_size=2))
texts = st.builds(
    lambda value, indent: json.dumps(value, indent=indent).encode(),
    good | good | objects,
    st.sampled_from([None, None, 1]),
)
ODD = [
    b"",
    b" ",
    b"\n",
    b"null",
    b"[]",
    b"[{}]",
    b"1",
    b'"n"',
    b"{",
    b"}",
    b"{}{}",
    b"{}\n{}",
    b'{"n":',
    b'{"n": 1}}',
    b',"n":1}',
    b'{"o":{',
    b"}}",
    b'{"s":"a\nb"}',
    b'{"s":"',
    b'"}',
    b'{"s":"\xff"}',
    b'{"n":1,"n":2}',
    b"\xef\xbb\xbf{}",
    b" {}\r\n",
    b"{}x",
    b"{} {",
    b'{"x":' + b"[" * 40 + b"]" * 40 + b"}",
]
messages = st.lists(texts | st.sampled_from(ODD) | st.none(), max_size=40)


def decoded(found: list[bytes | None], schema: pa.Schema = SCHEMA) -> DecodedMessages:
    return Json().decoder(schema)(found)


@pytest.mark.parametrize("names", ["n f at s l".split(), "n f at s".split(), ["s"]])
@examples(15)
@given(found=messages)
@example([b'{"o":', b'{"n":1}}', b"{}{}"])
@example([b'{"n":1', b',"s":""}', b"{}{}", b'{"n":4}'])
@example([b"{}{}", b"", b"{}"])
@example([b"{}{}", b""])
@example([b"{}{}", b"\n"])
@example([b"", b"{}{}"])
@example([b'{"n": "x"}', b'{"n": 1}'] * 40)
@example([b'{"n": 1.5}', b'{"at": "soon"}', b"{}", b'{"s": "\xff"}'] * 10)
@example([b'{"n":1,"n":2}', b'{"s":"a","n":3,"s":null}'])
@example([b'{"n":1e2}', b'{"n":18446744073709551616,"f":7}', b'{"f":-0}'])
def test_all_at_once_is_each_alone(names: list[str], found: list[bytes | None]) -> None:
    """With a list among the columns, and without one, which is read in another way."""
    result = decoded(found, pa.schema([SCHEMA.field(name) for name in names]))
    rows = [json_row(message, names) for message in found]
    assert result.places.tolist() == [place for place, row in enumerate(rows) if row is not None]
    assert result.batch.to_pylist() == [row for row in rows if row is not None]
    assert [bad.place for bad in result.bad] == [n for n, row in enumerate(rows) if row is None]
    assert all(bad.cause for bad in result.bad)


ALONE = [
    b'{"n":1,"f":2}',
    b'{"n":1,"n":2}',
    b'{"n":"a","n":2}',
    b'{"other":1e400}',
    b'{"f":-0}',
    b'{"f":-Infinity}',
    b'{"at":"20250101T000000Z"}',
    b'{"at":"2025-01-01T00:00:00.123456789Z"}',
    b'{"n":9223372036854775808}',
    b"\xef\xbb\xbf{}",
    b"[]",
    None,
]


@pytest.mark.parametrize("names", ["n f at s l".split(), "n f at s".split()])
@pytest.mark.parametrize("message", ALONE)
def test_what_a_message_is_does_not_depend_on_its_neighbours(
    message: bytes | None, names: list[str]
) -> None:
    schema = pa.schema([SCHEMA.field(name) for name in names])
    alone = repr(decoded([message], schema).batch.to_pylist())
    for other in ALONE:
        result = decoded([other, message, other], schema)
        mine = [
            row
            for row, place in zip(result.batch.to_pylist(), result.places, strict=True)
            if place == 1
        ]
        assert repr(mine) == alone


def test_names_that_json_escapes_are_read_too() -> None:
    schema = pa.schema({'a"b': pa.int64(), "ü": pa.int64(), "new\nline": pa.int64()})
    result = decoded([json.dumps(dict.fromkeys(schema.names, 7)).encode()], schema)
    assert result.batch.to_pylist() == [dict.fromkeys(schema.names, 7)]


def test_a_batch_without_bad_ones_is_in_order() -> None:
    result = decoded([b'{"n":%d}' % n for n in range(1000)])
    assert result.batch["n"].to_pylist() == result.places.tolist() == list(range(1000))
    assert result.bad == ()


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (None, r"^the message is a tombstone \(no value\)$"),
        (b"  ", "is empty"),
        (b"null", "not a JSON object but null"),
        (b"[1]", "not a JSON object but an array"),
        (b'{"n":', "does not end with }"),
        (b'{"n":1}{"n":2}', "not one JSON object: Extra"),
        (b'{"n":"x"}', "field 'n' is declared as int64, but the message has a string"),
        (b'{"n":1.5}', "field 'n'"),
        (b'{"n":9223372036854775808}', "field 'n'"),
        (b'{"at":5}', "field 'at' is declared as timestamp.*has a number"),
        (b'{"at":"soon"}', "field 'at'.*soon"),
        (b'{"at":"2025-01-01T00:00:00"}', "field 'at'.*no zone"),
        (b'{"at":"20250101T000000Z"}', "field 'at'.*20250101T000000Z"),
        (b'{"l":["x"]}', "field 'l'|field 'l"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b'},"n":"', "does not end"),
    ],
)
def test_the_cause_says_what_is_wrong_and_where(message: bytes | None, cause: str) -> None:
    result = decoded([b'{"n":1}', message, b'{"n":2}'])
    assert result.batch["n"].to_pylist() == [1, 2]
    (bad,) = result.bad
    assert bad.place == 1
    with pytest.raises(ValueError, match=cause):
        raise ValueError(bad.cause)


def test_pretty_printed_objects_with_maps_are_one_message_each() -> None:
    schema = pa.schema({"m": pa.map_(pa.string(), pa.int64())})
    result = decoded([b'{\n "m": {\n"a": 1}\n}', b'{"m":\n[]}', b'{"m": {"b": 2}}'], schema)
    assert result.batch["m"].to_pylist() == [[("a", 1)], [("b", 2)]]
    assert [bad.place for bad in result.bad] == [1]


@pytest.mark.parametrize(
    ("unit", "number", "when"),
    [
        ("seconds", b"1735689600", NEW_YEAR),
        ("seconds", b"1735689600.25", NEW_YEAR.replace(microsecond=250_000)),
        ("millis", b"1735689600001", NEW_YEAR.replace(microsecond=1000)),
        ("micros", b"1735689600000001", NEW_YEAR.replace(microsecond=1)),
        ("millis", b"-1", datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
    ],
)
def test_instants_may_be_numbers(unit: str, number: bytes, when: datetime) -> None:
    result = Json(timestamps=unit).decoder(SCHEMA)([b'{"at":' + number + b"}", b'{"at":"x"}'])
    assert result.batch["at"].to_pylist() == [when]
    assert [bad.place for bad in result.bad] == [1]
    (written,) = Json(timestamps=unit).encoder(SCHEMA)(result.batch).to_pylist()
    assert float(json.loads(written)["at"]) == float(number)


@pytest.mark.parametrize(
    "schema", [SCHEMA, SCHEMA.append(pa.field("m", pa.map_(pa.string(), pa.int64())))]
)
@pytest.mark.parametrize("zone", ["Z", "+00:00"])
def test_nanoseconds_in_a_text_are_cut_off(schema: pa.Schema, zone: str) -> None:
    """Java writes nine digits."""
    messages = [
        b'{"at":"2025-01-01T00:00:00.123456789%b"}' % zone.encode(),
        b'{"at":"1025-01-01T00:00:00Z"}',
        b'{"at":"2025-01-01T00:00:00.123456789"}',
    ]
    result = Json().decoder(schema)(messages)
    micros = NEW_YEAR.replace(microsecond=123_456)
    assert result.batch["at"].to_pylist() == [micros, NEW_YEAR.replace(year=1025)]
    assert [bad.place for bad in result.bad] == [2]


@pytest.mark.parametrize("number", [b"9223372036855", b"1e18", b"-9999999999999999999", b"1e30"])
def test_seconds_that_no_instant_has_are_a_bad_message(number: bytes) -> None:
    message = b'{"at":' + number + b"}"
    result = Json(timestamps="seconds").decoder(SCHEMA)([message, b'{"at":1735689600}'])
    assert [bad.place for bad in result.bad] == [0]
    assert result.batch["at"].to_pylist() == [NEW_YEAR]


@pytest.mark.parametrize("other", [pa.int64(), pa.map_(pa.string(), pa.int64())])
def test_a_value_is_judged_alike_whichever_way_it_is_read(other: pa.DataType) -> None:
    """Rows with maps are read one by one, others by Arrow."""
    schema = pa.schema({"local": pa.timestamp("us"), "f": pa.float64(), "x": other})
    messages = [
        b'{"local":"2025-01-01T00:00:00"}',
        b'{"local":"2025-01-01T00:00:00+01:00"}',
        b'{"local":"2025-01-01T00:00:00Z"}',
        b'{"f":1e400}',
        b'{"f":-Infinity}',
    ]
    result = Json().decoder(schema)(messages)
    assert [bad.place for bad in result.bad] == [1, 2, 3]
    assert result.batch["local"].to_pylist() == [NEW_YEAR.replace(tzinfo=None), None]
    assert result.batch["f"].to_pylist() == [None, -float("inf")]


def test_a_unit_that_there_is_not_is_refused() -> None:
    with pytest.raises(BuildError, match="choose iso, seconds, millis, micros"):
        Json(timestamps="hours")


def test_numbers_are_instants_in_columns_only() -> None:
    schema = pa.schema({"in": pa.list_(pa.timestamp("us"))})
    assert Json().row_schema(schema) == schema
    with pytest.raises(BuildError, match=r"column 'in'.*declare int64 there"):
        Json(timestamps="millis").row_schema(schema)


@pytest.mark.parametrize("schema", [None, pa.schema([])])
def test_a_schema_is_needed(schema: pa.Schema | None) -> None:
    with pytest.raises(BuildError, match="needs schema="):
        Json().row_schema(schema)


def test_a_message_is_a_row_without_a_line_break() -> None:
    batch = pa.record_batch({"n": [1, None], "s": ['a"\n', "b"]})
    assert Json().encoder(batch.schema)(batch).to_pylist() == [
        b'{"n":1,"s":"a\\"\\n"}',
        b'{"n":null,"s":"b"}',
    ]
    assert len(Json().encoder(batch.schema)(batch.slice(0, 0))) == 0
