"""Aligned sources stay together, and every row is read: whole jobs of the planner, simulated."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace._epochs.facts import Facts
from headrace._epochs.offset import INITIAL, Offset
from headrace._epochs.planner import PlannerSettings, plan
from headrace._watermarks.alignment import PROBE
from headrace.config import Epochs
from headrace.endpoints import Span
from headrace.watermarks import WatermarkStrategy
from tests.epochs.test_planner import Rows
from tests.examples import examples

#: (source, partition) -> the timestamp of every position, None for a row without one
Input = Mapping[tuple[str, str], Sequence[int | None]]

BASE = WatermarkStrategy.monotonous().with_timestamps("at")


def aligned(drift_us: int, idleness_us: int | None = None) -> WatermarkStrategy:
    strategy = BASE.with_alignment("g", timedelta(microseconds=drift_us))
    if idleness_us is None:
        return strategy
    return strategy.with_idleness(timedelta(microseconds=idleness_us))


def simulate(
    rows: Input, strategy: WatermarkStrategy, epochs: Epochs, *, bounded: bool = True
) -> list[Offset]:
    """Every epoch until nothing is to do; the clock moves by 1 us with every question."""
    uids = sorted({source for source, _ in rows})
    settings = PlannerSettings(epochs, {u: Rows() for u in uids}, dict.fromkeys(uids, strategy))
    spans: dict[str, dict[str, Span]] = {uid: {} for uid in uids}
    for (source, name), stamps in rows.items():
        spans[source][name] = Span(0, len(stamps), finished=bounded)
    start, facts, offsets, quiet, clock_us = INITIAL, Facts(), list[Offset](), 0, 0
    while quiet < 100 and not start.final:
        clock_us += 1
        offset = plan(start, facts, spans, clock_us=clock_us, settings=settings)
        if offset is None:
            quiet += 1
            continue
        facts = facts.after(offset, **read(rows, offset), size=0, duration_us=400_000)
        facts = Facts.from_json(facts.to_json())
        offsets.append(offset)
        start, quiet = offset, 0
        assert len(offsets) < 5_000
    return offsets


def read(rows: Input, offset: Offset) -> dict[str, Any]:
    """What the tasks of an epoch report."""
    extremes: dict[str, dict[str, dict[str, int]]] = {"minima": {}, "maxima": {}}
    count: dict[str, int] = {}
    for source, parts in offset.ranges.items():
        for name, (start, end) in parts.items():
            seen = [at for at in rows[source, name][start:end] if at is not None]
            count[source] = count.get(source, 0) + end - start
            if seen:
                extremes["minima"].setdefault(source, {})[name] = min(seen)
                extremes["maxima"].setdefault(source, {})[name] = max(seen)
    return {**extremes, "rows": count}


def drifts(rows: Input, offsets: Sequence[Offset]) -> list[int]:
    """Behind each epoch: how far the fastest partition is ahead of the slowest that has rows left."""
    found = []
    for offset in offsets:
        ends = {(s, n): to for s, parts in offset.ranges.items() for n, (_, to) in parts.items()}
        shown = {
            key: max([-(10**9), *(a for a in rows[key][:to] if a is not None)])
            for key, to in ends.items()
        }
        left = [shown[key] for key, to in ends.items() if to < len(rows[key])]
        found.append(max(shown.values()) - min(left) if left else 0)
    return found


def test_a_fast_source_is_read_as_slowly_as_the_slow_one() -> None:
    # One row of "fast" covers 100 times the event time of one of "slow".
    rows: Input = {("slow", "0"): range(0, 200_000, 1), ("fast", "0"): range(0, 200_000, 100)}
    offsets = simulate(rows, aligned(5_000), Epochs(max_rows=20_000))
    # What cannot be known: the first step covers 100 rows, 10,000 us of the fast source.
    assert max(drifts(rows, offsets)[:1]) <= 10_000
    assert max(drifts(rows, offsets)[4:]) <= 5_000 + 100
    alone = simulate(rows, BASE, Epochs(max_rows=20_000))
    assert max(drifts(rows, alone)[:3]) > 100_000


def test_one_that_is_far_ahead_waits_until_the_other_has_come() -> None:
    rows: Input = {("a", "0"): range(10_000), ("b", "0"): range(9_000, 10_000)}
    offsets = simulate(rows, aligned(100), Epochs(rows=500))
    taken = [offset.ranges["b"]["0"][1] for offset in offsets]
    caught_up = next(i for i, o in enumerate(offsets) if o.ranges["a"]["0"][1] >= 8_900)
    assert set(taken[:caught_up]) == {PROBE}
    assert taken[-1] == 1_000


stamps = st.lists(st.one_of(st.none(), st.integers(0, 2_000)), max_size=60).map(
    lambda found: sorted(found, key=lambda at: (at is None, at)) if len(found) % 2 else found
)
inputs = st.dictionaries(
    st.tuples(st.sampled_from("st"), st.sampled_from("012")), stamps, min_size=1, max_size=5
)
cuts = st.one_of(
    st.integers(1, 9).map(lambda rows: Epochs(rows=rows)),
    st.integers(1, 30).map(lambda rows: Epochs(max_rows=rows)),
)


@given(inputs, st.integers(1, 500), cuts)
@examples(150)
def test_every_row_of_an_aligned_group_is_read(rows: Input, drift_us: int, epochs: Epochs) -> None:
    offsets = simulate(rows, aligned(drift_us), epochs)
    assert offsets[-1].final
    for (source, name), found in rows.items():
        assert offsets[-1].ranges[source][name][1] == len(found)


@given(inputs, st.integers(1, 500), st.integers(1, 30))
@examples(100)
def test_with_idleness_an_unbounded_group_never_stands_still(
    rows: Input, drift_us: int, max_rows: int
) -> None:
    strategy = aligned(drift_us, idleness_us=50)
    offsets = simulate(rows, strategy, Epochs(max_rows=max_rows), bounded=False)
    for (source, name), found in rows.items():
        assert offsets[-1].ranges[source][name][1] == len(found)


def test_without_idleness_a_source_at_its_end_holds_the_group() -> None:
    rows: Input = {("a", "0"): range(10), ("b", "0"): range(0, 10_000, 10)}
    offsets = simulate(rows, aligned(100), Epochs(max_rows=20), bounded=False)
    assert offsets[-1].ranges["b"]["0"][1] < 100
    assert offsets[-1].ranges["a"]["0"][1] == 10
