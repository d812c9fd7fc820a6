"""Tables as text are read and written the same, and mistakes in them are refused."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.cases.harness.tables import aligned, parse_expected, parse_input, text_of
from tests.known_answers.timeline import us


def test_rows_watermarks_and_borders() -> None:
    found = parse_input("""
        at: time | n: int | gap: duration | ok: bool | name: str
        08:05    | 1      | 90s           | true     | tea cup
        watermark 08:05:30
        null     | null   | null          | false    |
        ---
        08:06    | -2     | 1h            | null     | null
    """)
    assert found.time == "at"
    assert [row["n"] for row in found.rows] == [1, None, -2]
    assert [row["name"] for row in found.rows] == ["tea cup", "", None]
    assert found.rows[0]["gap"] == timedelta(seconds=90)
    assert found.watermarks == {1: us("08:05:30") - 1}
    assert found.stretches == [range(2), range(2, 3)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("08:05", datetime(2020, 4, 15, 8, 5, tzinfo=UTC)),
        ("12:00:26", datetime(2020, 4, 15, 12, 0, 26, tzinfo=UTC)),
        ("12:00:00.001", datetime(2020, 4, 15, 12, 0, 0, 1000, tzinfo=UTC)),
        ("12:00:00.000001", datetime(2020, 4, 15, 12, 0, 0, 1, tzinfo=UTC)),
        ("2025-03-30 00:00", datetime(2025, 3, 30, tzinfo=UTC)),
    ],
)
def test_times_are_written_as_they_are_read(text: str, value: datetime) -> None:
    assert parse_input(f"at: time\n{text}").rows == [{"at": value}]
    assert text_of(value) == text


@pytest.mark.parametrize("text", ["90s", "5m", "2h", "1d", "1us"])
def test_durations_are_written_as_they_are_read(text: str) -> None:
    (row,) = parse_input(f"gap: duration\n{text}").rows
    assert text_of(row["gap"]) == text


def test_values_of_different_types_have_different_texts() -> None:
    assert [text_of(v) for v in (1, 1.0, True, None, [1, None])] == [
        "1",
        "1.0",
        "true",
        "null",
        "[1, null]",
    ]


def test_a_table_is_written_as_it_could_stand_in_a_case() -> None:
    text = aligned(["key", "n"], [("a", "100"), ("long", "2")])
    assert text == "key  | n\na    | 100\nlong | 2"
    assert parse_expected(text).rows == [("a", "100"), ("long", "2")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line"),
        ("at: moment\n08:05", "'at: moment' is not"),
        ("n: int\n1 | 2", "has 2 cells, but there are 1 columns"),
        ("at: time\n08:05\nwatermark 08:06\nwatermark 08:07", "follows another watermark"),
    ],
)
def test_a_mistake_in_a_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_input(text)
