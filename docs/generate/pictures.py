"""Draws the pictures of the guide: one for each kind of window.

A picture is not made by hand: a small pipeline runs in this process, and what is drawn are the rows that went
in and the results that came out. The docs build calls `on_pre_build`; a test compares the files with the code.

    python docs/generate/pictures.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace import testing, windows
from headrace.connectors import memory

__all__ = ["PICTURES", "draw", "on_pre_build"]

FOLDER = Path(__file__).parents[1] / "guide" / "pictures"
SECONDS = (1, 3, 4, 8, 13, 14, 21, 26, 27)
WIDTH, LEFT, RIGHT, LINE = 720, 20, 700, 26
NAMESPACE = "http://www.w3.org/2000/svg"
START = datetime(2025, 1, 1, tzinfo=UTC)

Bar = tuple[float, float, str]


def second(number: float) -> timedelta:
    """So many seconds."""
    return timedelta(seconds=number)


@dataclass
class Click:
    """A row of the pictures."""

    user: str
    at: datetime


class Odd(windows.WindowAssigner):
    """Windows of a user's own: seven seconds and three seconds in turn."""

    def assign(self, row: Any, timestamp: datetime) -> Iterable[tuple[datetime, datetime]]:
        """The long one or the short one."""
        start = timestamp - (timestamp - START) % second(10)
        middle = start + second(7)
        yield (start, middle) if timestamp < middle else (middle, start + second(10))


@dataclass(frozen=True)
class Picture:
    """What is drawn: rows at these times, cut so, on an axis of so many units."""

    window: windows.Assigner
    times: Sequence[float] = SECONDS
    unit: timedelta = timedelta(seconds=1)
    axis: float = 30
    ticks: float = 5
    start: datetime = START
    label: Callable[[float], str] = lambda place: f"{place:.0f} s"


def _hour(place: float) -> str:
    return f"{(BERLIN + timedelta(hours=place)).strftime('%d %b %H:%M')} UTC"


BERLIN = datetime(2025, 3, 29, 20, tzinfo=UTC)

PICTURES: dict[str, Picture] = {
    "tumbling": Picture(windows.Tumbling(second(10))),
    "hopping": Picture(windows.Hopping(second(10), second(5))),
    "cumulating": Picture(windows.Cumulating(second(30), second(10))),
    "session": Picture(windows.Session(second(4))),
    "look-back": Picture(windows.LookBack(second(5))),
    "count": Picture(windows.Count(3)),
    "count-sliding": Picture(windows.Count(4, 2)),
    "global": Picture(windows.Global()),
    "own": Picture(Odd()),
    "days": Picture(
        windows.Tumbling(timedelta(days=1), zone="Europe/Berlin"),
        times=tuple(range(1, 60, 6)),
        unit=timedelta(hours=1),
        axis=60,
        ticks=12,
        start=BERLIN,
        label=_hour,
    ),
}


def draw(picture: Picture) -> str:
    """The picture as SVG."""
    bars = _bars(picture)
    lanes = _lanes(bars)
    height = 70 + LINE * (1 + max((lane for lane, _ in lanes), default=0))
    parts = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_axis(picture),
        *(_dot(picture, time) for time in picture.times),
        *(_bar(picture, lane, bar) for lane, bar in lanes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def on_pre_build(**_: Any) -> None:
    """Called by the docs build: draw all pictures anew where they changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        path, drawn = FOLDER / f"{name}.svg", draw(picture)
        if not path.exists() or path.read_text() != drawn:
            path.write_text(drawn)


def _bars(picture: Picture) -> list[Bar]:
    """Where the windows lie, in units, and how many rows came out of each."""
    found = []
    for row in _run(picture):
        if isinstance(picture.window, windows.LookBack):
            start, end = row["at"] - timedelta(microseconds=picture.window.size_us), row["at"]
        elif picture.window.timed:
            start, end = row["window_start"], row["window_end"]
        else:
            start, end = row["first"], row["last"]
        place = [(moment - picture.start) / picture.unit for moment in (start, end)]
        found.append((place[0], place[1], f"{row['rows']} row" + "s" * (row["rows"] != 1)))
    return sorted(found)


def _run(picture: Picture) -> list[dict[str, Any]]:
    env = hr.Environment("picture", checkpoint="unused")
    rows = [Click("a", picture.start + time * picture.unit) for time in picture.times]
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    sink = memory.MemorySink()
    (
        env.from_source(memory.MemorySource(rows, schema=Click), watermarks=strategy, uid="clicks")
        .key_by("user")
        .window(picture.window)
        .aggregate(rows=hr.count(), first=hr.min("at"), last=hr.max("at"), uid="windows")
        .sink_to(sink, uid="out")
    )
    testing.run_local(env, shards=1)
    return sink.to_pylist()


def _lanes(bars: Sequence[Bar]) -> list[tuple[int, Bar]]:
    """Bars that do not overlap share a lane."""
    ends: list[float] = []
    placed = []
    for bar in bars:
        lane = next((i for i, end in enumerate(ends) if end <= bar[0]), len(ends))
        ends[lane : lane + 1] = [bar[1]]
        placed.append((lane, bar))
    return placed


def _x(picture: Picture, place: float) -> float:
    return LEFT + (RIGHT - LEFT) * min(max(place / picture.axis, 0.0), 1.0)


def _axis(picture: Picture) -> Iterable[str]:
    yield f'<line x1="{LEFT}" y1="30" x2="{RIGHT}" y2="30" stroke="#888888"/>'
    steps = int(picture.axis / picture.ticks)
    for step in range(steps + 1):
        place = step * picture.ticks
        x = _x(picture, place)
        anchor = "start" if step == 0 else "end" if step == steps else "middle"
        yield f'<line x1="{x:.1f}" y1="26" x2="{x:.1f}" y2="34" stroke="#888888"/>'
        yield f'<text x="{x:.1f}" y="16" text-anchor="{anchor}" fill="#555555">{picture.label(place)}</text>'


def _dot(picture: Picture, time: float) -> str:
    return f'<circle cx="{_x(picture, time):.1f}" cy="30" r="5" fill="#c0504d"/>'


def _bar(picture: Picture, lane: int, bar: Bar) -> str:
    left, right = _x(picture, bar[0]), _x(picture, bar[1])
    top, width = 46 + lane * LINE, max(right - left, 10)
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="18" rx="4" fill="#dbe5f1" stroke="#4f81bd"/>'
        f'<text x="{left + width / 2:.1f}" y="{top + 13}" text-anchor="middle" fill="#1f3b63">{bar[2]}</text>'
    )


if __name__ == "__main__":
    on_pre_build()
