"""How many positions of each partition the next epoch takes. Pure.

With `Epochs(rows=R)` it is exactly R rows a source, shared evenly by the partitions that have not ended; a
share that is not all there yet is waited for, so cuts do not depend on how fast rows come. Otherwise it is
what there is, up to a limit that `facts` steers, shared evenly by all partitions of all sources. Either way
no epoch crosses a cut of a source, and a source whose positions are not rows is counted in positions. What
alignment allows a partition (`_watermarks.alignment`) is the most that it gets.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace._epochs.facts import Facts
from headrace._epochs.offset import Ranges
from headrace._watermarks.alignment import Allowances
from headrace.config import Epochs
from headrace.endpoints import Source, Span

__all__ = ["allot", "share"]

_ENDLESS = 2**62


def allot(
    here: Ranges,
    spans: Mapping[str, Mapping[str, Span]],
    facts: Facts,
    epochs: Epochs,
    sources: Mapping[str, Source],
    allowances: Allowances | None = None,
) -> Ranges:
    """The ranges of the next epoch; `here` has every partition as an empty range where it stands."""
    most = _most(here, sources, allowances or {})
    if epochs.rows is not None:
        taken = {
            source: _exactly(
                epochs.rows, parts, spans.get(source, {}), sources.get(source), most[source]
            )
            for source, parts in here.items()
        }
    else:
        taken = _up_to_limit(here, spans, facts, epochs, sources, most)
    return {
        source: {
            name: (start, start + taken[source].get(name, 0)) for name, (start, _) in parts.items()
        }
        for source, parts in here.items()
    }


def share(amount: int, capacities: Mapping[str, int]) -> dict[str, int]:
    """Split an amount evenly; what one cannot take goes to the others. Ties go by name."""
    taken = dict.fromkeys(capacities, 0)
    left = amount
    # The smallest first: when it is full, what remains of its part is spread over the rest.
    order = sorted(capacities, key=lambda name: (capacities[name], name))
    for done, name in enumerate(order):
        taken[name] = min(capacities[name], left // (len(order) - done))
        left -= taken[name]
    for name in sorted(capacities):
        if left > 0 and taken[name] < capacities[name]:
            taken[name] += 1
            left -= 1
    return taken


def _most(
    here: Ranges, sources: Mapping[str, Source], allowances: Allowances
) -> dict[str, dict[str, int]]:
    """The most positions of each partition, whatever there is."""
    limits = {uid: source.max_positions for uid, source in sources.items()}
    return {
        source: {
            name: min(
                _ENDLESS if limits.get(source) is None else limits[source] or 0,
                allowances.get((source, name), _ENDLESS),
            )
            for name in parts
        }
        for source, parts in here.items()
    }


def _exactly(
    rows: int,
    parts: Mapping[str, tuple[int, int]],
    spans: Mapping[str, Span],
    source: Source | None,
    most: Mapping[str, int],
) -> dict[str, int]:
    """Shares that do not depend on how much has come, or nothing until all of them are there."""
    if source is not None and not source.row_positions:
        return {
            name: min(1, most[name], _reach(start, spans.get(name)))
            for name, (start, _) in parts.items()
        }
    reaches = {name: _reach(start, spans.get(name)) for name, (start, _) in parts.items()}
    capacities = {
        name: reaches[name] if _is_closed(start, spans.get(name)) else _ENDLESS
        for name, (start, _) in parts.items()
    }
    taken = share(rows, {name: min(most[name], capacity) for name, capacity in capacities.items()})
    complete = all(taken[name] <= reaches[name] for name in taken)
    return taken if complete else {}


def _up_to_limit(
    here: Ranges,
    spans: Mapping[str, Mapping[str, Span]],
    facts: Facts,
    epochs: Epochs,
    sources: Mapping[str, Source],
    most: Mapping[str, Mapping[str, int]],
) -> dict[str, dict[str, int]]:
    limit = min(facts.limit, epochs.max_rows)
    if facts.bytes_per_row > 0:
        limit = max(1, min(limit, int(epochs.max_bytes / facts.bytes_per_row)))
    wanted: dict[tuple[str, str], int] = {}
    for source, parts in here.items():
        for name, (start, _) in parts.items():
            reach = _reach(start, spans.get(source, {}).get(name))
            wanted[source, name] = min(reach, most[source][name])
    counted = {key: n for key, n in wanted.items() if n and sources[key[0]].row_positions}
    rows = share(limit, {_joined(key): n for key, n in counted.items()})
    taken: dict[str, dict[str, int]] = {source: {} for source in here}
    for (source, name), reach in wanted.items():
        if sources[source].row_positions:
            taken[source][name] = rows.get(_joined((source, name)), 0) if reach else 0
        else:
            taken[source][name] = min(reach, _positions(limit, facts, source))
    return taken


def _joined(key: tuple[str, str]) -> str:
    return f"{key[0]}\0{key[1]}"


def _positions(limit: int, facts: Facts, source: str) -> int:
    """How many positions are about `limit` rows; one while nothing is known of them."""
    rows = facts.rows_per_position.get(source)
    if rows is None:
        return 1
    return max(1, int(limit / max(rows, 1.0)))


def _next_cut(start: int, span: Span) -> int | None:
    return min((cut for cut in span.cuts if cut > start), default=None)


def _reach(start: int, span: Span | None) -> int:
    """How many positions can be read in one epoch."""
    if span is None:
        return 0
    cut = _next_cut(start, span)
    end = span.end if cut is None else min(cut, span.end)
    return max(0, end - start)


def _is_closed(start: int, span: Span | None) -> bool:
    """Whether what can be read now is all there will be in this epoch, however long we wait."""
    if span is None:
        return True
    cut = _next_cut(start, span)
    return span.finished or (cut is not None and cut <= span.end)
