"""Jobs that join two streams in windows, and what they must say of the epochs that were cut."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import headrace as hr
from headrace.connectors.memory import MemorySink, MemorySource
from headrace.testing import LocalResult
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.watermarks import CLOCK
from tests.oracle import WindowOracle
from tests.oracle.assigners import spans_of
from tests.oracle.epochs import instant
from tests.oracle.joins.window import WindowJoinOracle

START = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
CLICKS = {"user": str, "n": int, "gap": timedelta, "at": datetime}
VIEWS = {"user": str, "page": str, "gap": timedelta, "at": datetime}
SCHEMAS = (CLICKS, VIEWS)
PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}
OUTPUTS = ("results", "late_left", "late_right", "errors")

Row = dict[str, Any]
Bag = Counter[tuple[tuple[str, Any], ...]]


class Shifts(hr.windows.WindowAssigner):
    """Four seconds, and those of even numbers also in windows of ten."""

    def assign(self, row: Any, timestamp: datetime) -> Iterator[tuple[datetime, datetime]]:
        second = (timestamp - START) // SECOND
        yield START + second // 4 * 4 * SECOND, START + (second // 4 * 4 + 4) * SECOND
        if getattr(row, "n", 0) % 2 == 0:
            yield START + second // 10 * 10 * SECOND, START + (second // 10 * 10 + 10) * SECOND


def rows_of(seed: int, side: int, count: int = 60) -> list[list[Row]]:
    """Two partitions of rows, roughly in order, some of them far behind."""
    chance = random.Random(seed * 2 + side)
    made: list[list[Row]] = [[], []]
    for number in range(count):
        second = number / 2 + chance.choice([0, 0, 0, 0, -1, -2, -9, -20])
        row = {
            "user": chance.choice(["a", "a", "b", "c", "", None]),
            "gap": timedelta(seconds=chance.choice([1, 2, 3])),
            "at": START + timedelta(seconds=max(second, 0)),
        }
        row |= {"n": number} if side == 0 else {"page": f"p{number}"}
        made[number % 2].append(row)
    return made


def build(seed: int, make: Any) -> tuple[hr.Environment, dict[str, MemorySink], list[Any]]:
    """A job of what `make(clicks, views)` returns, with all its outputs in sinks, and its rows."""
    env = hr.Environment("joined", epochs=hr.Epochs(rows=16))
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps("at")
    rows = [rows_of(seed, side) for side in (0, 1)]
    streams = [
        env.from_source(
            MemorySource(partitions=rows[side], schema=SCHEMAS[side]), watermarks=strategy, uid=uid
        )
        for side, uid in enumerate(("clicks", "views"))
    ]
    joined = make(*streams)
    sinks = {}
    for output in OUTPUTS:
        sinks[output] = MemorySink()
        stream = joined if output == "results" else getattr(joined, output)
        stream.sink_to(sinks[output], uid=f"to-{output}")
    return env, sinks, rows


def found(sinks: Mapping[str, MemorySink]) -> dict[str, Bag]:
    """What came out."""
    rows = {output: sink.to_pylist() for output, sink in sinks.items()}
    rows["errors"] = [json.loads(letter["payload"])["at"] for letter in rows["errors"]]
    rows["errors"] = [{"at": datetime.fromisoformat(at)} for at in rows["errors"]]
    return {output: bag(mine) for output, mine in rows.items()}


def epochs_of(result: LocalResult, rows: Sequence[Any], time: str = "event") -> list[StepEpoch]:
    """The epochs as an oracle takes them."""
    feeds = [CLOCK] if time == "processing" else ["clicks", "views"]
    given = []
    for epoch in result.epochs:
        came = []
        for side, uid in enumerate(("clicks", "views")):
            for name, (first, last) in epoch.ranges.get(uid, {}).items():
                for row in rows[side][int(name)][first:last]:
                    at = epoch.clock_us if time == "processing" else us(row["at"])
                    came.append(SidedRow(at, row, side))
        given.append(
            StepEpoch(
                min(epoch.before[feed] for feed in feeds),
                min(epoch.watermarks[feed] for feed in feeds),
                came,
                clock_before=epoch.clock_before_us,
                clock=epoch.clock_us,
            )
        )
    return given


def expected(window: Any, epochs: Sequence[StepEpoch], **said: Any) -> dict[str, Bag]:
    """What must come out of windows that do not merge."""
    oracle = WindowJoinOracle(
        window, [("user",), ("user",)], [list(schema) for schema in SCHEMAS], **said
    )
    answers = [oracle.epoch(epoch) for epoch in epochs]
    return {
        "results": bag(row for each in answers for row in each.ticked + each.settled),
        "late_left": bag(row for each in answers for row in each.late[0]),
        "late_right": bag(row for each in answers for row in each.late[1]),
        "errors": bag({"at": row["at"]} for row in oracle.errors),
    }


class Told(hr.ProcessWindowFunction):
    """A function of both sides, for an oracle of one."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def process(self, key: Any, context: Any, rows: Sequence[Any]) -> Iterator[Any]:
        sides = [
            [SimpleNamespace(**row.row) for row in rows if row.side == side] for side in (0, 1)
        ]
        yield from self._function(key, context.window, *sides)


def grouped(
    window: Any, epochs: Sequence[StepEpoch], function: Any, lateness_us: int = 0
) -> dict[str, Bag]:
    """What must come out of any windows if the function is called with all rows of each firing."""
    oracle = WindowOracle(window, lateness_us, ("user",), [], function=Told(function))
    tagged = [
        epoch._replace(
            rows=[
                (
                    r.at,
                    {
                        "user": r.fields["user"],
                        "gap": r.fields["gap"],
                        "side": r.side,
                        "row": r.fields,
                        **r.fields,
                    },
                )
                for r in epoch.rows
            ]
        )
        for epoch in epochs
    ]
    results, late = oracle.run(tagged)
    return {
        "results": bag(results),
        "late_left": bag(row["row"] for row in late if row["side"] == 0),
        "late_right": bag(row["row"] for row in late if row["side"] == 1),
        "errors": bag({"at": row["at"]} for row in oracle.errors),
    }


def without_keys(window: Any, epochs: Sequence[StepEpoch], how: str) -> dict[str, Bag]:
    """What becomes of rows without a key of preserved sides: each is alone in its session; those that are no errors."""
    found: dict[str, list[Row]] = {output: [] for output in OUTPUTS}
    for epoch in epochs:
        for at, fields, side, _ in epoch.rows:
            if fields["user"] is not None or side not in PRESERVED.get(how, ()):
                continue
            found["errors"].append({"at": fields["at"]})
            ((start, end),) = spans_of(window, at, fields)
            if epoch.watermark >= end - 1:
                found[("late_left", "late_right")[side]].append(fields)
                continue
            row = SimpleNamespace(**fields)
            span = SimpleNamespace(start=instant(start), end=instant(end))
            both = (None, row) if side else (row, None)
            found["results"].append(_joined(*both, span, right=how != "anti"))
    return {output: bag(rows) for output, rows in found.items()}


def all_pairs(how: str) -> Any:
    """What a join makes of a window, as a function of a co-group."""

    def pairs(_: Any, window: Any, left: Sequence[Any], right: Sequence[Any]) -> Iterator[Row]:
        for mine in left if right else ():
            if how == "semi":
                yield _joined(mine, None, window, right=False)
            elif how != "anti":
                yield from (_joined(mine, other, window) for other in right)
        if not right and how in ("left", "full", "anti"):
            yield from (_joined(mine, None, window, right=how != "anti") for mine in left)
        if not left and how in ("right", "full"):
            yield from (_joined(None, other, window) for other in right)

    return pairs


def _joined(left: Any, other: Any, window: Any, *, right: bool = True) -> Row:
    row: Row = {name: None if left is None else getattr(left, name) for name in CLICKS}
    if right:
        row["user"] = (other if left is None else left).user
        row |= {
            f"{name}_right" if name in CLICKS else name: None
            if other is None
            else getattr(other, name)
            for name in VIEWS
            if name != "user"
        }
    return row | {"window_start": window.start, "window_end": window.end}


def bag(rows: Iterable[Mapping[str, Any]]) -> Bag:
    """Rows in no order."""
    return Counter(tuple(sorted(row.items())) for row in rows)


def us(moment: datetime) -> int:
    """An instant in microseconds."""
    return (moment - EPOCH) // timedelta(microseconds=1)
