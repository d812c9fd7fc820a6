"""Slow and obvious decoders of JSON messages: one message at a time, with Python's own parser."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

#: A row, or None if the message is bad.
Row = dict[str, Any] | None


def json_row(message: bytes | None, names: Sequence[str]) -> Row:
    """The row of these columns (n: int64, f: double, at: instant, s: string, l: list of int64)."""
    if message is None:
        return None
    try:
        given = json.loads(message.decode("utf-8-sig"))
        if not isinstance(given, dict):
            return None
        return {name: CHECKS[name](given.get(name)) for name in names}
    except (ValueError, RecursionError):
        return None


def whole(value: Any) -> int | None:
    if value is not None and (type(value) is not int or not -(2**63) <= value < 2**63):
        raise ValueError(value)
    return value


def fraction(value: Any) -> float | None:
    if value is not None and type(value) not in (int, float):
        raise ValueError(value)
    return None if value is None else float(value)


def instant(value: Any) -> datetime | None:
    if value is None:
        return None
    if type(value) is not str:
        raise ValueError(value)
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError("no zone")
    return found


def text(value: Any) -> str | None:
    if value is not None and type(value) is not str:
        raise ValueError(value)
    return value


def wholes(value: Any) -> list[int | None] | None:
    if value is not None and type(value) is not list:
        raise ValueError(value)
    return None if value is None else [whole(each) for each in value]


CHECKS: dict[str, Callable[[Any], Any]] = {
    "n": whole,
    "f": fraction,
    "at": instant,
    "s": text,
    "l": wholes,
}
