"""Compares what a run gave with what the case expects, and says so readably.

A stream of changes (a column `change` that the case does not name) is compared as the table that its changes add up to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.cases.harness.case import Case
from tests.cases.harness.tables import Expected, aligned, text_of

__all__ = ["differences"]

Texts = list[tuple[str, ...]]
_FIRING = "firing"
_NUMBERING = ("pane", _FIRING)


def differences(
    case: Case, found: Mapping[str, Sequence[Mapping[str, Any]]], *, fewest: bool
) -> str:
    """Nothing if a run gave what it has to; `fewest` says that it had the fewest epochs."""
    problems = []
    if set(found) != set(case.outputs):
        problems.append(f"outputs are {sorted(found)}, expected are {sorted(case.outputs)}")
    for name in found.keys() & case.outputs.keys():
        last = () if fewest else case.last_per
        problem = _difference(case, case.outputs[name], found[name], last)
        problems += [f"output '{name}'\n{problem}"] if problem else []
    return "\n".join(problems)


def _difference(
    case: Case, expected: Expected, rows: Sequence[Mapping[str, Any]], last: Sequence[str]
) -> str:
    columns = expected.columns
    only_last = bool(last) and set(last) <= set(columns)
    needed = (*columns, _FIRING) if only_last else columns
    unknown = [name for row in rows[:1] for name in needed if name not in row]
    if unknown:
        return f"there is no column {unknown[0]!r}, there are {sorted(rows[0])}"
    if rows and "change" in rows[0] and "change" not in columns:
        table, negative = _added_up(rows, columns)
        if negative:
            return f"retracted before it was added: {negative}"
        return _bags(columns, Counter(expected.rows), table)
    wanted, got = list(expected.rows), [_texts(row, columns) for row in rows]
    if only_last:
        if repeated := _repeated(rows, last):
            return repeated
        kept = [place for place, name in enumerate(columns) if name not in _NUMBERING]
        wanted, got = (
            _last(texts, columns, last, kept) for texts in (wanted, _by_firing(rows, got))
        )
        columns = tuple(columns[place] for place in kept)
    problem = _bags(columns, Counter(wanted), Counter(got))
    return problem or _order(case, columns, wanted, got)


def _texts(row: Mapping[str, Any], columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(text_of(row[name]) for name in columns)


def _added_up(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str]
) -> tuple[Counter[tuple[str, ...]], str]:
    table: Counter[tuple[str, ...]] = Counter()
    for row in rows:
        texts = _texts(row, columns)
        table[texts] += 1 if row["change"] in ("+I", "+U") else -1
        if table[texts] < 0:
            return table, " | ".join(texts)
    return +table, ""


def _by_firing(rows: Sequence[Mapping[str, Any]], texts: Texts) -> Texts:
    """Epochs are published in order, shards of one epoch are not; the firing says which is last."""
    places = sorted(range(len(rows)), key=lambda place: rows[place][_FIRING])
    return [texts[place] for place in places]


def _repeated(rows: Sequence[Mapping[str, Any]], per: Sequence[str]) -> str:
    """Firings that there are twice: the last row of each window would not show them."""
    names = [*per, _FIRING, *(["change"] if rows and "change" in rows[0] else [])]
    found = Counter(_texts(row, names) for row in rows)
    twice = [firing for firing, count in found.items() if count > 1]
    return f"fired more than once\n{aligned(names, sorted(twice))}" if twice else ""


def _last(texts: Texts, columns: Sequence[str], per: Sequence[str], kept: Sequence[int]) -> Texts:
    keys = [columns.index(name) for name in per]
    latest = {tuple(row[place] for place in keys): row for row in texts}
    return [tuple(row[place] for place in kept) for row in latest.values()]


def _bags(columns: Sequence[str], wanted: Counter[Any], got: Counter[Any]) -> str:
    parts = [("missing", wanted - got), ("surplus", got - wanted)]
    return "\n".join(
        f"{title}\n{aligned(columns, sorted(rows.elements()))}" for title, rows in parts if rows
    )


def _order(case: Case, columns: Sequence[str], wanted: Texts, got: Texts) -> str:
    if case.ordered_per is None or not set(case.ordered_per) <= set(columns):
        return ""
    places = [columns.index(name) for name in case.ordered_per]
    return "\n".join(
        f"order of {' | '.join(key) or 'all rows'}\n{aligned(columns, mine)}"
        for key, right, mine in _sequences(places, wanted, got)
        if right != mine
    )


def _sequences(
    places: Sequence[int], wanted: Texts, got: Texts
) -> Iterator[tuple[tuple[str, ...], Texts, Texts]]:
    for key in dict.fromkeys(tuple(row[place] for place in places) for row in wanted):
        yield (
            key,
            *(
                [row for row in rows if tuple(row[p] for p in places) == key]
                for rows in (wanted, got)
            ),
        )
