"""Tables as text: input rows with their marks, expected rows, and the text of a value.

A time is of 15 April 2020 (UTC) unless it has a date: "08:05", "12:00:26", "08:05:00.001", "2025-03-30 08:05". A duration is
"90s", "5m", "2h" or "1d"; an empty cell is an empty string, `null` is no value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

__all__ = ["Expected", "Input", "aligned", "parse_expected", "parse_input", "text_of"]

_DAY: Final = date(2020, 4, 15)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "us": 1}
_END_OF_STRETCH: Final = "---"
_WATERMARK: Final = "watermark "


@dataclass(frozen=True)
class Input:
    """Rows in order of arrival."""

    schema: Mapping[str, type]
    rows: Sequence[Mapping[str, Any]]
    #: Number of rows with a timestamp before it -> the watermark, in microseconds.
    watermarks: Mapping[int, int]
    #: Numbers of rows after which all runs end an epoch.
    borders: Sequence[int]

    @property
    def time(self) -> str | None:
        """The column with the timestamps."""
        return next((name for name, kind in self.schema.items() if kind is datetime), None)

    @property
    def stretches(self) -> Sequence[range]:
        """The rows between two borders."""
        ends = [*self.borders, len(self.rows)]
        return [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True)
class Expected:
    """Rows as text, in the order of the case."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def parse_input(text: str) -> Input:
    """The rows of a stream and the marks between them."""
    header, *lines = _lines(text)
    schema = {name: _KINDS[kind][0] for name, kind in map(_declared, _cells(header))}
    read = [_KINDS[kind][1] for _, kind in map(_declared, _cells(header))]
    rows: list[dict[str, Any]] = []
    watermarks: dict[int, int] = {}
    borders: list[int] = []
    timed = next((name for name, kind in schema.items() if kind is datetime), "")
    for line in lines:
        if line.startswith(_WATERMARK):
            at = sum(row.get(timed) is not None for row in rows)
            if at in watermarks:
                raise ValueError(f"{line!r} follows another watermark: put a row between them")
            watermarks[at] = _microseconds(_time(line.removeprefix(_WATERMARK))) - 1
        elif line == _END_OF_STRETCH:
            borders.append(len(rows))
        else:
            cells = _fitting(line, len(read))
            values = [None if c == "null" else f(c) for f, c in zip(read, cells, strict=True)]
            rows.append(dict(zip(schema, values, strict=True)))
    return Input(schema, rows, watermarks, borders)


def parse_expected(text: str) -> Expected:
    """Column names and the rows below them."""
    header, *lines = _lines(text)
    columns = tuple(_cells(header))
    return Expected(columns, [_fitting(line, len(columns)) for line in lines])


def text_of(value: Any) -> str:
    """A value as an expected table has it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case datetime():
            return _time_text(value.astimezone(UTC))
        case timedelta():
            return _duration_text(value // timedelta(microseconds=1))
        case list() | tuple():
            return "[" + ", ".join(map(text_of, value)) + "]"
    return str(value)


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as it could stand in a case."""
    lines = [columns, *rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _lines(text: str) -> list[str]:
    found = [line.strip() for line in text.splitlines() if line.strip()]
    if not found:
        raise ValueError("a table begins with its columns, but there is no line")
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def _fitting(line: str, columns: int) -> tuple[str, ...]:
    cells = tuple(_cells(line))
    if len(cells) != columns:
        raise ValueError(f"{line!r} has {len(cells)} cells, but there are {columns} columns")
    return cells


def _declared(cell: str) -> tuple[str, str]:
    name, _, kind = (part.strip() for part in cell.partition(":"))
    if kind not in _KINDS:
        raise ValueError(f"{cell!r} is not 'name: type'; types are {', '.join(_KINDS)}")
    return name, kind


def _time(text: str) -> datetime:
    day, _, clock = text.rpartition(" ")
    moment = datetime.fromisoformat(f"{day or _DAY.isoformat()} {clock}")
    return moment.replace(tzinfo=UTC)


def _time_text(moment: datetime) -> str:
    text = moment.strftime("%H:%M:%S.%f").removesuffix(".000000").removesuffix(":00")
    if "." in text:
        text = re.sub(r"000$", "", text)
    return text if moment.date() == _DAY else f"{moment.date()} {text}"


def _duration(text: str) -> timedelta:
    number, unit = re.fullmatch(r"(\d+)(us|[dhms])", text).groups()  # type: ignore[union-attr]
    return timedelta(microseconds=int(number) * _UNITS[unit])


def _duration_text(us: int) -> str:
    unit = next(unit for unit, size in _UNITS.items() if us % size == 0)
    return f"{us // _UNITS[unit]}{unit}"


def _bool(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


_KINDS: Final[Mapping[str, tuple[type, Callable[[str], Any]]]] = {
    "time": (datetime, _time),
    "duration": (timedelta, _duration),
    "str": (str, str),
    "int": (int, int),
    "float": (float, float),
    "bool": (bool, _bool),
}
