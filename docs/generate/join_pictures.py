"""Draws the pictures of the guide to joins: one for each kind.

As in pictures.py nothing is drawn by hand: rows go one by one through a small pipeline in this process. Numbers are rows of
the left, letters rows of the right; lines are the pairs that came out, and below stand the results at their
timestamps. A ring is a row without a partner, a dashed one came too late.

    python docs/generate/join_pictures.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import headrace as hr
from headrace import testing, windows
from headrace.connectors import memory

__all__ = ["FOLDER", "PICTURES", "draw", "on_pre_build"]

FOLDER = Path(__file__).parents[1] / "guide" / "pictures" / "joins"
NAMESPACE = "http://www.w3.org/2000/svg"
START = datetime(2025, 1, 1, tzinfo=UTC)

WIDTH, FIRST_X, LAST_X = 720, 80, 700
AXIS_Y, SIDES_Y, RESULTS_Y, LINE = 30, (66, 130), 160, 24
RADIUS, LETTER = 10, 7.5
RED, BLUE, GREY, INK, PALE = "#c0504d", "#4f81bd", "#888888", "#1f3b63", "#dbe5f1"
COLOURS = (RED, BLUE)
NOTHING = "–"


def second(number: float) -> timedelta:
    """So many seconds."""
    return timedelta(seconds=number)


@dataclass
class Row:
    """A row of the pictures: a number on the left, a letter on the right."""

    name: str
    key: str
    at: datetime


@dataclass
class Result:
    """A result: the names of the rows that it was made of, and when."""

    left: str | None
    right: str | None
    change: str | None
    stamp: datetime
    start: datetime | None
    end: datetime | None


class Named(hr.ProcessFunction):
    """Makes of a result what is drawn of it."""

    def process_element(self, row: Any, ctx: Any) -> Iterator[Result]:
        """One result."""
        seen = row._asdict()
        names = ("name", "name_right", "change", "window_start", "window_end")
        left, right, change, start, end = (seen.get(name) for name in names)
        yield Result(left, right, change, ctx.timestamp, start, end)


@dataclass(frozen=True)
class Picture:
    """What is drawn: rows as "1@2.5", in the order in which they arrive, and the join that they meet in."""

    rows: str
    join: Callable[[hr.Stream, hr.Stream], Any]
    #: From where to where a row of the left looks for partners on the right, in seconds from itself.
    reach: tuple[float, float] | None = None
    #: Rows of the right hold until the next.
    holds: bool = False
    #: It goes by event time, so rows can come too late.
    timed: bool = True
    axis: float = 30
    ticks: float = 5

    @property
    def epochs(self) -> list[list[tuple[str, float]]]:
        """Names and seconds of the rows of each epoch: as bars divide them, or one by one."""
        told = self.rows.split("|" if self.asks else None)
        pairs = [[entry.split("@") for entry in epoch.split()] for epoch in told]
        return [[(name, float(at)) for name, at in epoch] for epoch in pairs]

    @property
    def placed(self) -> list[tuple[str, float]]:
        """Names and seconds."""
        return [row for epoch in self.epochs for row in epoch]

    @property
    def asks(self) -> bool:
        """The right is a table outside, and names end with what they ask it for."""
        return "|" in self.rows


def _nearest(direction: str) -> Callable[[hr.Stream, hr.Stream], Any]:
    return lambda left, right: left.join_asof(
        right, on="key", direction=direction, tolerance=second(4), uid="j"
    )


def _table(keys: Sequence[str]) -> dict[str, dict[str, str]]:
    """A table outside, which remembers what it was asked for."""
    CALLS.append(sorted(keys))
    return {key: {"name_right": key.upper()} for key in keys if key != "c"}


CALLS: list[list[str]] = []
BY_ARRIVAL = "1@3 a@8 2@13 b@18 3@23"
TRADES = "a@2 1@5 2@11 b@13 3@16 c@21 4@23 d@24.5"

PICTURES: dict[str, Picture] = {
    "window": Picture(
        "1@2 a@4 2@7 b@13 3@21.5 c@23 d@26 4@8.5",
        lambda left, right: left.window_join(
            right, windows.Tumbling(second(10)), on="key", how="full", uid="j"
        ),
    ),
    "interval": Picture(
        "1@2 a@4.5 2@7 b@8 c@10.5 3@14 d@21 4@23 5@15.5 e@26",
        lambda left, right: left.interval_join(right, on="key").between(
            second(0), second(4), how="full", uid="j"
        ),
        reach=(0, 4),
    ),
    "versioned": Picture(
        "1@2 a@4 2@7 3@10 b@13 4@16 5@19 c@22 6@26 d@18",
        lambda left, right: left.join_versioned(right, on="key", how="left", uid="j"),
        holds=True,
    ),
    "backward": Picture(TRADES, _nearest("backward"), reach=(-4, 0)),
    "forward": Picture(TRADES, _nearest("forward"), reach=(0, 4)),
    "nearest": Picture(TRADES, _nearest("nearest"), reach=(-4, 4)),
    "regular": Picture(
        BY_ARRIVAL,
        lambda left, right: left.join(right, on="key", how="left", forever=True, uid="j"),
        timed=False,
    ),
    "regular-last": Picture(
        BY_ARRIVAL,
        lambda left, right: left.join(
            right.key_by("key").last(forever=True), on="key", how="left", forever=True, uid="j"
        ),
        holds=True,
        timed=False,
    ),
    "broadcast": Picture(
        BY_ARRIVAL,
        lambda left, right: left.join(right.broadcast(), on="key", how="left", uid="j"),
        holds=True,
        timed=False,
    ),
    "lookup": Picture(
        "1a@3 2b@5 3a@7 | 4b@13 5c@15 | 6a@23 7a@25",
        lambda left, _: left.join_lookup(_table, on="key", schema={"name_right": str}, uid="j"),
        timed=False,
    ),
}


def draw(picture: Picture) -> str:
    """The picture as SVG."""
    results, late = _run(picture)
    lanes = _lanes(picture, results)
    height = RESULTS_Y + LINE * (1 + max((lane for lane, *_ in lanes), default=0)) + 6
    pairs = _standing(results)
    paired = {name for pair in pairs for name in pair}
    meeting = _calls(picture) if picture.asks else _pairs(picture, pairs)
    parts = [
        f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_windows(picture, results),
        *_reaches(picture, late),
        *_axis(picture),
        *_holds(picture, late),
        *meeting,
        *_dots(picture, paired, late),
        *_results(lanes),
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


def _run(picture: Picture) -> tuple[list[dict[str, Any]], set[str]]:
    """The results, and the names of late rows. Every row is an epoch of its own."""
    env = hr.Environment("picture", checkpoint="unused")
    rows: list[Any] = []
    for epoch in picture.epochs:
        rows += [Row(name, name[1:] or "k", START + second(at)) for name, at in epoch]
        rows.append(testing.cut())
    CALLS.clear()
    source = memory.MemorySource(rows, schema=Row)
    strategy = hr.WatermarkStrategy.monotonous().with_timestamps("at")
    both = env.from_source(source, watermarks=strategy, uid="rows")
    sides = [both.filter(lambda row, side=side: _side(row.name) == side) for side in (0, 1)]
    joined = picture.join(*sides)
    found, late = memory.MemorySink(), memory.MemorySink()
    joined.process(Named(), uid="named").sink_to(found, uid="found")
    if picture.timed:
        joined.late_left.union(joined.late_right).sink_to(late, uid="late")
    testing.run_local(env, shards=1)
    return found.to_pylist(), {row["name"] for row in late.to_pylist()}


def _side(name: str) -> int:
    return int(not name[0].isdigit())


def _x(picture: Picture, place: float) -> float:
    return FIRST_X + (LAST_X - FIRST_X) * min(max(place / picture.axis, 0.0), 1.0)


def _seconds(moment: datetime) -> float:
    return (moment - START).total_seconds()


def _axis(picture: Picture) -> Iterable[str]:
    yield f'<line x1="{FIRST_X}" y1="{AXIS_Y}" x2="{LAST_X}" y2="{AXIS_Y}" stroke="{GREY}"/>'
    for step in range(int(picture.axis / picture.ticks) + 1):
        place = step * picture.ticks
        x = _x(picture, place)
        yield f'<line x1="{x:.1f}" y1="{AXIS_Y - 4}" x2="{x:.1f}" y2="{AXIS_Y + 4}" stroke="{GREY}"/>'
        yield f'<text x="{x:.1f}" y="16" text-anchor="middle" fill="#555555">{place:.0f} s</text>'
    words = ("left", "calls" if picture.asks else "right")
    for y, colour, word in zip(SIDES_Y, COLOURS, words, strict=True):
        yield f'<line x1="{FIRST_X}" y1="{y}" x2="{LAST_X}" y2="{y}" stroke="#dddddd"/>'
        yield f'<text x="12" y="{y + 4}" fill="{colour}">{word}</text>'
    yield f'<text x="12" y="{RESULTS_Y + 13}" fill="{INK}">results</text>'


def _dots(picture: Picture, paired: set[str], late: set[str]) -> Iterator[str]:
    for name, at in picture.placed:
        side = _side(name)
        x, y, colour = _x(picture, at), SIDES_Y[side], COLOURS[side]
        fill, ink, dashes = colour, "#ffffff", ""
        if name in late:
            fill, ink, colour, dashes = "#ffffff", GREY, GREY, ' stroke-dasharray="3 2"'
        elif name not in paired:
            fill, ink = "#ffffff", colour
        yield (
            f'<circle cx="{x:.1f}" cy="{y}" r="{RADIUS}" fill="{fill}" stroke="{colour}" stroke-width="1.5"{dashes}/>'
            f'<text x="{x:.1f}" y="{y + 4}" text-anchor="middle" fill="{ink}">{name}</text>'
        )
        if name in late:
            yield f'<text x="{x:.1f}" y="{y - RADIUS - 4}" text-anchor="middle" fill="{GREY}">late</text>'


def _standing(results: Iterable[dict[str, Any]]) -> dict[tuple[str, str], bool]:
    """The pairs that came out, and whether they stand in the end."""
    return {
        (row["left"], row["right"]): not (row["change"] or "").startswith("-")
        for row in results
        if row["left"] and row["right"]
    }


def _pairs(picture: Picture, pairs: dict[tuple[str, str], bool]) -> Iterator[str]:
    places = dict(picture.placed)
    for (left, right), stands in pairs.items():
        look = 'stroke="#555555"' if stands else f'stroke="{GREY}" stroke-dasharray="4 3"'
        ends = [_x(picture, places[name]) for name in (left, right)]
        yield (
            f'<line x1="{ends[0]:.1f}" y1="{SIDES_Y[0]}" x2="{ends[1]:.1f}" y2="{SIDES_Y[1]}"'
            f' {look} stroke-width="1.5"/>'
        )


def _calls(picture: Picture) -> Iterator[str]:
    """What a table outside was asked for, epoch by epoch."""
    for epoch, asked in zip(picture.epochs, CALLS, strict=True):
        x = _x(picture, sum(at for _, at in epoch) / len(epoch))
        for _, at in epoch:
            yield (
                f'<line x1="{_x(picture, at):.1f}" y1="{SIDES_Y[0]}" x2="{x:.1f}" y2="{SIDES_Y[1]}"'
                ' stroke="#555555" stroke-width="1.5"/>'
            )
        yield _chip(x, SIDES_Y[1] - RADIUS, ", ".join(asked), fill="#ffffff")


def _reaches(picture: Picture, late: set[str]) -> Iterator[str]:
    """Where each row of the left looks for partners."""
    if picture.reach is None:
        return
    top, bottom = SIDES_Y
    low = bottom + RADIUS + 4
    for name, at in picture.placed:
        if _side(name) == 0 and name not in late:
            first, last = (f"{_x(picture, at + distance):.1f}" for distance in picture.reach)
            points = f"{_x(picture, at):.1f},{top} {last},{bottom} {last},{low} {first},{low} {first},{bottom}"
            yield f'<polygon points="{points}" fill="{RED}" fill-opacity="0.12"/>'


def _holds(picture: Picture, late: set[str]) -> Iterator[str]:
    """How long each row of the right holds."""
    if not picture.holds:
        return
    rights = sorted((at, name) for name, at in picture.placed if _side(name) and name not in late)
    ends = [at for at, _ in rights[1:]] + [picture.axis]
    for (at, _), end in zip(rights, ends, strict=True):
        x, width = _x(picture, at), _x(picture, end) - _x(picture, at)
        top = SIDES_Y[1] - RADIUS
        yield (
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{2 * RADIUS}" rx="3"'
            f' fill="{PALE}" stroke="{BLUE}"/>'
        )


def _windows(picture: Picture, results: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The windows that results came out of."""
    spans = {(r["start"], r["end"]) for r in results if r["start"] is not None}
    for start, end in sorted(spans):
        left, right = (_x(picture, _seconds(moment)) for moment in (start, end))
        top, height = SIDES_Y[0] - 28, SIDES_Y[1] - SIDES_Y[0] + 48
        yield (
            f'<rect x="{left + 2:.1f}" y="{top}" width="{right - left - 4:.1f}" height="{height}" rx="6"'
            f' fill="{PALE}" fill-opacity="0.6" stroke="{BLUE}" stroke-dasharray="4 3"/>'
        )


def _lanes(
    picture: Picture, results: Sequence[dict[str, Any]]
) -> list[tuple[int, float, str, bool]]:
    """The results: lane, place, text, and whether it withdraws another. Those that overlap have lanes of their own."""
    ends: list[float] = []
    placed = []
    for row in sorted(results, key=lambda r: r["stamp"]):
        text = f"{row['left'] or NOTHING}{row['right'] or NOTHING}"
        if row["change"] is not None:
            text = f"{row['change']} {text}"
        half = len(text) * LETTER / 2 + 4
        x = _x(picture, _seconds(row["stamp"]))
        lane = next((i for i, end in enumerate(ends) if end <= x - half), len(ends))
        ends[lane : lane + 1] = [x + half + 2]
        placed.append((lane, x, text, (row["change"] or "").startswith("-")))
    return placed


def _results(lanes: Iterable[tuple[int, float, str, bool]]) -> Iterator[str]:
    for lane, x, text, withdraws in lanes:
        fill, dashes = ("#ffffff", ' stroke-dasharray="3 2"') if withdraws else (PALE, "")
        yield _chip(x, RESULTS_Y + lane * LINE, text, fill, dashes)


def _chip(x: float, top: float, text: str, fill: str, dashes: str = "") -> str:
    width = len(text) * LETTER + 8
    return (
        f'<rect x="{x - width / 2:.1f}" y="{top}" width="{width:.1f}" height="{2 * RADIUS}" rx="4"'
        f' fill="{fill}" stroke="{BLUE}"{dashes}/>'
        f'<text x="{x:.1f}" y="{top + 14}" text-anchor="middle" fill="{INK}">{text}</text>'
    )


if __name__ == "__main__":
    on_pre_build()
