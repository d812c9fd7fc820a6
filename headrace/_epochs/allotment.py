"""How many positions of each partition the next epoch takes. Pure.

With `Epochs(rows=R)` it is exactly R rows a source, or its own `max_rows` if those are fewer, shared evenly by
the partitions that have not ended; a share that is not all there yet is waited for, so cuts do not depend on
how fast rows come. Otherwise it is what there is, up to a limit that `facts` steers, shared evenly by all
partitions of all sources. Either way no epoch crosses a cut of a source, and a source whose positions are not
rows is counted in positions. What alignment allows a partition (`_watermarks.alignment`) is the most that it
gets.
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
    *,
    clock_us: int,
) -> Ranges:
    """The ranges of the next epoch; `here` has every partition as an empty range where it stands."""
    most = _most(here, sources, allowances or {})
    spans = {
        uid: {}
        if _is_held(sources.get(uid), here[uid], spans.get(uid, {}), _waited(uid, facts, clock_us))
        else spans.get(uid, {})
        for uid in here
    }
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
    if source is not None and source.max_rows is not None:
        rows = min(rows, source.max_rows)
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
    counted = _within_sources(counted, sources)
    rows = share(limit, {_joined(key): n for key, n in counted.items()})
    taken: dict[str, dict[str, int]] = {source: {} for source in here}
    for (source, name), reach in wanted.items():
        if sources[source].row_positions:
            taken[source][name] = rows.get(_joined((source, name)), 0) if reach else 0
        else:
            taken[source][name] = min(reach, _positions(limit, facts, source))
    return taken


def _within_sources(
    wanted: Mapping[tuple[str, str], int], sources: Mapping[str, Source]
) -> dict[tuple[str, str], int]:
    """What is wanted, cut down to what each source allows for all its partitions together."""
    cut = dict(wanted)
    for uid, source in sources.items():
        if source.max_rows is not None:
            mine = {name: n for (owner, name), n in wanted.items() if owner == uid}
            cut |= {(uid, name): n for name, n in share(source.max_rows, mine).items()}
    return cut


def _is_held(
    source: Source | None,
    parts: Mapping[str, tuple[int, int]],
    spans: Mapping[str, Span],
    waited_us: int,
) -> bool:
    """Whether a source waits for more rows before it gives any."""
    if source is None or not source.min_rows or waited_us >= source.patience_us:
        return False
    if all(span.finished for span in spans.values()):
        return False
    ready = sum(_reach(start, spans.get(name)) for name, (start, _) in parts.items())
    return ready < source.min_rows


def _waited(uid: str, facts: Facts, clock_us: int) -> int:
    """Since a source last gave rows; epochs for the sake of time or of other sources do not count."""
    return clock_us - facts.taken_us.get(uid, 0)


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
