"""The planner without Spark: what is the next epoch, given this?"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._epochs.facts import FIRST_LIMIT, Facts
from headrace._epochs.offset import INITIAL, Offset
from headrace._epochs.planner import PlannerSettings, plan, unread
from headrace.config import Epochs
from headrace.endpoints import Enumerator, Json, Source, SourceBatch, Span
from headrace.errors import InputError
from headrace.watermarks import CLOCK, END_OF_TIME, NO_WATERMARK, WatermarkStrategy
from tests.examples import examples


class Rows(Source):
    def __init__(self, *, row_positions: bool = True, max_positions: int | None = None) -> None:
        self.row_positions = row_positions
        self.max_positions = max_positions

    @property
    def schema(self) -> pa.Schema:
        raise NotImplementedError

    def signature(self) -> dict[str, Json]:
        raise NotImplementedError

    def enumerator(self, directory: Path) -> Enumerator:
        raise NotImplementedError

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        raise NotImplementedError


BOUNDED = WatermarkStrategy.bounded_out_of_orderness(timedelta(microseconds=10))


def settings(epochs: Epochs | None = None, **sources: Source) -> PlannerSettings:
    sources = sources or {"s": Rows()}
    return PlannerSettings(epochs or Epochs(), sources, dict.fromkeys(sources, BOUNDED))


def next_epoch(
    start: Offset,
    spans: Mapping[str, Mapping[str, Span]],
    facts: Facts | None = None,
    **options: Any,
) -> Offset | None:
    chosen = {"settings": settings(), "clock_us": 0, **options}
    return plan(start, facts or Facts(), spans, **chosen)


def planned(start: Offset, spans: Mapping[str, Mapping[str, Span]], **options: Any) -> Offset:
    found = next_epoch(start, spans, **options)
    assert found is not None
    return found


def behind(offset: Offset, facts: Facts | None = None) -> Facts:
    return (facts or Facts()).after(offset, maxima={}, rows={}, size=0, duration_us=None)


def run(spans: Mapping[str, Mapping[str, Span]], chosen: PlannerSettings) -> list[Offset]:
    """All epochs of a bounded job; every position p of every partition has the timestamp p."""
    offsets, start, facts = [], INITIAL, Facts()
    while (offset := plan(start, facts, spans, clock_us=0, settings=chosen)) is not None:
        read = {
            source: {name: to - 1 for name, (begin, to) in parts.items() if to > begin}
            for source, parts in offset.ranges.items()
        }
        rows = {
            source: sum(to - begin for begin, to in parts.values())
            for source, parts in offset.ranges.items()
        }
        facts = facts.after(offset, maxima=read, rows=rows, size=0, duration_us=400_000)
        offsets.append(offset)
        start = offset
        assert len(offsets) < 10_000
    return offsets


def cuts(offsets: list[Offset], source: str = "s", partition: str = "0") -> list[tuple[int, int]]:
    return [offset.ranges[source][partition] for offset in offsets]


DONE = Span(0, 10, finished=True)


def test_the_birth_epoch_happens_without_anything_to_read() -> None:
    before = {"s": NO_WATERMARK, CLOCK: NO_WATERMARK}
    assert next_epoch(INITIAL, {}) == Offset(
        0, {"s": {}}, {"s": NO_WATERMARK, CLOCK: -1}, before, 0
    )
    assert next_epoch(INITIAL, {}, request="stop", unpublished=99) is not None


def test_a_job_with_nothing_to_do_runs_no_epoch() -> None:
    birth = next_epoch(INITIAL, {"s": {"0": Span(0, 0)}})
    assert birth is not None
    assert next_epoch(birth, {"s": {"0": Span(0, 0)}}) is None


def test_a_bounded_job_reads_all_and_ends_with_one_final_epoch() -> None:
    offsets = run({"s": {"0": DONE}}, settings())
    assert cuts(offsets) == [(0, 10), (10, 10)]
    assert [offset.final for offset in offsets] == [False, True]
    assert offsets[-1].watermarks == {"s": END_OF_TIME, CLOCK: END_OF_TIME}
    assert offsets[-1].before == {"s": NO_WATERMARK, CLOCK: -1}


def test_empty_bounded_input_is_one_final_epoch() -> None:
    (offset,) = run({"s": {"0": Span(0, 0, finished=True)}}, settings())
    assert (offset.epoch, offset.final) == (0, True)


def test_a_source_that_has_told_nothing_yet_is_not_finished() -> None:
    two = settings(s=Rows(), t=Rows())
    birth = next_epoch(INITIAL, {"s": {"0": Span(0, 0, finished=True)}}, settings=two)
    assert birth is not None
    assert not birth.final


def test_the_watermark_of_an_epoch_follows_from_the_epochs_before_it() -> None:
    offsets = run({"s": {"0": replace(DONE, end=60)}}, settings(Epochs(rows=20)))
    assert [offset.watermarks["s"] for offset in offsets] == [NO_WATERMARK, 8, 28, END_OF_TIME]
    assert [offset.before["s"] for offset in offsets] == [NO_WATERMARK, NO_WATERMARK, 8, 28]


def test_a_moved_watermark_alone_is_a_reason_for_an_epoch() -> None:
    spans = {"s": {"0": Span(0, 30)}}
    first = next_epoch(INITIAL, spans)
    assert first is not None
    facts = Facts().after(first, maxima={"s": {"0": 29}}, rows={"s": 30}, size=0, duration_us=None)
    second = next_epoch(first, spans, facts)
    assert second is not None
    assert (second.positions, second.watermarks["s"]) == (0, 18)
    after = facts.after(second, maxima={}, rows={}, size=0, duration_us=None)
    assert next_epoch(second, spans, after) is None


def test_idleness_alone_is_a_reason_for_an_epoch() -> None:
    chosen = replace(
        settings(), strategies={"s": BOUNDED.with_idleness(timedelta(microseconds=100))}
    )
    spans = {"s": {"0": Span(0, 30), "1": Span(0, 0)}}
    first = next_epoch(INITIAL, spans, settings=chosen)
    assert first is not None
    facts = Facts().after(first, maxima={"s": {"0": 29}}, rows={"s": 30}, size=0, duration_us=None)
    assert next_epoch(first, spans, facts, settings=chosen, clock_us=99) is None
    woken = next_epoch(first, spans, facts, settings=chosen, clock_us=100)
    assert woken is not None
    assert woken.watermarks == {"s": 18, CLOCK: 99}


def test_exact_rows_are_split_evenly_and_the_rest_goes_where_rows_are_left() -> None:
    spans = {"s": {"0": Span(0, 10, finished=True), "1": Span(0, 3, finished=True)}}
    offsets = run(spans, settings(Epochs(rows=5)))
    assert cuts(offsets) == [(0, 3), (3, 7), (7, 10), (10, 10)]
    assert cuts(offsets, partition="1") == [(0, 2), (2, 3), (3, 3), (3, 3)]


def test_exact_rows_are_waited_for_so_that_cuts_do_not_depend_on_speed() -> None:
    chosen = settings(Epochs(rows=5))
    birth = next_epoch(INITIAL, {"s": {"0": Span(0, 4)}}, settings=chosen)
    assert birth is not None
    assert birth.positions == 0
    full = next_epoch(birth, {"s": {"0": Span(0, 7)}}, settings=chosen)
    assert full is not None
    assert cuts([full]) == [(0, 5)]
    last = next_epoch(full, {"s": {"0": Span(0, 7, finished=True)}}, settings=chosen)
    assert last is not None
    assert cuts([last]) == [(5, 7)]


def test_an_epoch_never_crosses_a_cut() -> None:
    spans = {"s": {"0": replace(DONE, cuts=(0, 4, 4, 9))}}
    for epochs in (Epochs(), Epochs(rows=5), Epochs(rows=100)):
        borders = {end for _, end in cuts(run(spans, settings(epochs)))}
        assert {4, 9, 10} <= borders
    assert cuts(run(spans, settings(Epochs(rows=100))))[:3] == [(0, 4), (4, 9), (9, 10)]


def test_without_exact_rows_the_first_epoch_is_small_and_later_ones_grow() -> None:
    sizes = [b - a for a, b in cuts(run({"s": {"0": replace(DONE, end=20_000_000)}}, settings()))]
    assert sizes[0] == FIRST_LIMIT
    assert sizes[1] > 2 * FIRST_LIMIT
    assert max(sizes) == Epochs().max_rows


def test_the_limit_holds_over_all_partitions_of_all_sources() -> None:
    chosen = settings(Epochs(max_rows=30), s=Rows(), t=Rows())
    span = Span(0, 1_000)
    birth = next_epoch(INITIAL, {"s": {"0": span, "1": span}, "t": {"0": span}}, settings=chosen)
    assert birth is not None
    assert birth.ranges == {"s": {"0": (0, 10), "1": (0, 10)}, "t": {"0": (0, 10)}}


def test_bytes_bound_an_epoch_too() -> None:
    heavy = Facts(bytes_per_row=2**20, limit=10**6)
    birth = next_epoch(INITIAL, {"s": {"0": Span(0, 10**6)}}, heavy)
    assert birth is not None
    assert birth.positions == 256
    enormous = next_epoch(INITIAL, {"s": {"0": Span(0, 9)}}, replace(heavy, bytes_per_row=2**40))
    assert enormous is not None
    assert enormous.positions == 1


def test_files_are_taken_by_what_one_held_and_never_beyond_their_own_limit() -> None:
    spans = {"s": {"files": Span(0, 500)}}
    chosen = settings(s=Rows(row_positions=False))
    unknown = next_epoch(INITIAL, spans, settings=chosen)
    known = next_epoch(INITIAL, spans, Facts(rows_per_position={"s": 1_000.0}), settings=chosen)
    limited = next_epoch(
        INITIAL,
        spans,
        Facts(rows_per_position={"s": 1.0}),
        settings=settings(s=Rows(row_positions=False, max_positions=7)),
    )
    exact = next_epoch(INITIAL, spans, settings=replace(chosen, epochs=Epochs(rows=5)))
    taken = [offset and offset.positions for offset in (unknown, known, limited, exact)]
    assert taken == [1, 50, 7, 1]


def test_epochs_keep_their_distance() -> None:
    chosen = settings(Epochs(min_interval=timedelta(microseconds=100)))
    spans = {"s": {"0": Span(0, 5)}}
    first = next_epoch(INITIAL, spans, settings=chosen, clock_us=1_000)
    assert first is not None
    more = {"s": {"0": Span(0, 9)}}
    assert next_epoch(first, more, settings=chosen, clock_us=1_099) is None
    assert next_epoch(first, more, settings=chosen, clock_us=1_100) is not None


def test_the_clock_never_falls() -> None:
    first = next_epoch(INITIAL, {"s": {"0": Span(0, 5)}}, clock_us=1_000)
    assert first is not None
    second = next_epoch(first, {"s": {"0": Span(0, 9)}}, clock_us=5)
    assert second is not None
    assert second.clock_us == 1_000


def test_a_stop_plans_nothing_and_a_drain_plans_the_end() -> None:
    first = next_epoch(INITIAL, {"s": {"0": Span(0, 5)}})
    assert first is not None
    more = {"s": {"0": Span(0, 9)}}
    assert next_epoch(first, more, request="stop") is None
    last = next_epoch(first, more, request="drain")
    assert last is not None
    assert (last.final, last.positions) == (True, 0)
    assert last.watermarks == {"s": END_OF_TIME, CLOCK: END_OF_TIME}
    assert next_epoch(last, more) is None
    assert unread(last, more) == {"s": 4}


def test_too_many_unpublished_epochs_stop_the_intake() -> None:
    first = next_epoch(INITIAL, {"s": {"0": Span(0, 5)}})
    assert first is not None
    more = {"s": {"0": Span(0, 9)}}
    assert next_epoch(first, more, unpublished=16) is None
    assert next_epoch(first, more, unpublished=15) is not None


def test_too_many_unpublished_bytes_stop_the_intake() -> None:
    first = planned(INITIAL, {"s": {"0": Span(0, 10)}})
    more = {"s": {"0": Span(0, 20)}}
    few = settings(Epochs(max_unpublished_bytes=1000, max_unpublished=3))
    assert next_epoch(first, more, settings=few, unpublished_bytes=1000) is None
    assert next_epoch(first, more, settings=few, unpublished=3) is None
    assert next_epoch(first, more, settings=few, unpublished=2, unpublished_bytes=999) is not None


def test_a_partition_that_the_job_does_not_know_begins_where_its_span_says() -> None:
    first = planned(INITIAL, {"s": {"0": Span(5, 30, begin=20)}})
    assert first.ranges["s"]["0"] == (20, 30)
    grown = {"s": {"0": Span(5, 30, begin=99), "1": Span(0, 4)}}
    second = planned(first, grown)
    assert second.ranges["s"] == {"0": (30, 30), "1": (0, 4)}


def test_a_firm_end_before_what_was_read_is_another_partition() -> None:
    first = planned(INITIAL, {"s": {"0": Span(0, 10, firm=True)}})
    with pytest.raises(InputError, match="ends at 4, but the checkpoint has read up to 10"):
        next_epoch(first, {"s": {"0": Span(0, 4, firm=True)}})
    assert next_epoch(first, {"s": {"0": Span(0, 4)}}) is None


def test_a_partition_is_not_idle_while_nobody_can_be_asked() -> None:
    idle = replace(BOUNDED, idleness_us=100)
    chosen = PlannerSettings(Epochs(), {"s": Rows()}, {"s": idle})
    spans = {"s": {"0": Span(0, 9), "1": Span(0, 9)}}
    first = planned(INITIAL, spans, settings=chosen)
    facts = Facts().after(
        first, maxima={"s": {"0": 1_000, "1": 500}}, rows={}, size=0, duration_us=None
    )
    away = {"s": {name: replace(span, stale=True) for name, span in spans["s"].items()}}
    held = planned(first, away, facts=facts, settings=chosen, clock_us=200)
    assert held.watermarks["s"] == 489
    moved = planned(first, spans, facts=facts, settings=chosen, clock_us=200)
    assert moved.watermarks["s"] == 989


def test_a_source_may_bound_the_rows_of_all_its_partitions() -> None:
    few = Rows()
    few.max_rows = 10
    spans = {"s": {"0": Span(0, 100), "1": Span(0, 3)}, "t": {"0": Span(0, 50)}}
    found = planned(INITIAL, spans, settings=settings(s=few, t=Rows()))
    assert found.ranges == {"s": {"0": (0, 7), "1": (0, 3)}, "t": {"0": (0, 50)}}
    spans["s"]["1"] = Span(0, 9)
    exactly = planned(INITIAL, spans, settings=settings(Epochs(rows=12), s=few, t=Rows()))
    assert exactly.ranges == {"s": {"0": (0, 5), "1": (0, 5)}, "t": {"0": (0, 12)}}


def test_a_source_may_wait_for_more_rows_but_not_for_ever() -> None:
    slow = Rows()
    slow.min_rows, slow.patience_us = 10, 1_000
    chosen = settings(s=slow)
    first = planned(INITIAL, {"s": {"0": Span(0, 20)}}, settings=chosen)
    assert first.positions == 20
    facts = behind(first)
    few = {"s": {"0": Span(0, 29)}}
    assert next_epoch(first, few, facts, settings=chosen, clock_us=999) is None
    assert planned(first, few, facts=facts, settings=chosen, clock_us=1_000).positions == 9
    many = {"s": {"0": Span(0, 30)}}
    assert planned(first, many, facts=facts, settings=chosen, clock_us=1).positions == 10
    ended = {"s": {"0": Span(0, 29, finished=True)}}
    assert planned(first, ended, facts=facts, settings=chosen, clock_us=1).positions == 9


def test_rows_that_wait_for_more_do_not_wait_longer_because_of_other_sources() -> None:
    slow = Rows()
    slow.min_rows, slow.patience_us = 10, 1_000
    chosen = settings(s=slow, t=Rows())
    offset = planned(INITIAL, {"s": {"0": Span(0, 20)}, "t": {"0": Span(0, 1)}}, settings=chosen)
    facts, taken = behind(offset), []
    for clock_us in range(400, 1_300, 400):
        spans = {"s": {"0": Span(0, 25)}, "t": {"0": Span(0, 1 + clock_us)}}
        offset = planned(offset, spans, facts=facts, settings=chosen, clock_us=clock_us)
        facts = behind(offset, facts)
        taken.append(offset.ranges["s"]["0"])
    assert taken == [(20, 20), (20, 20), (20, 25)]


def test_rows_that_are_gone_are_an_error_with_their_range() -> None:
    first = next_epoch(INITIAL, {"s": {"0": Span(0, 5)}})
    assert first is not None
    with pytest.raises(InputError, match="positions 5 to 7 were not read yet and are gone"):
        next_epoch(first, {"s": {"0": Span(8, 20)}})


def test_bounded_input_that_became_shorter_is_an_error() -> None:
    first = next_epoch(INITIAL, {"s": {"0": Span(0, 5)}})
    assert first is not None
    with pytest.raises(
        InputError, match=r"ends at 3, .* or it is told to end before what was read"
    ):
        next_epoch(first, {"s": {"0": Span(0, 3, finished=True)}})


def test_a_partition_that_the_outside_forgot_keeps_its_position() -> None:
    first = next_epoch(INITIAL, {"s": {"0": Span(0, 5), "1": Span(0, 5)}})
    assert first is not None
    second = next_epoch(first, {"s": {"1": Span(0, 8)}})
    assert second is not None
    assert second.ranges["s"] == {"0": (5, 5), "1": (5, 8)}


sources = st.dictionaries(
    st.sampled_from("st"),
    st.dictionaries(
        st.sampled_from("012"),
        st.builds(
            lambda length, cut: Span(0, length, finished=True, cuts=(cut,)),
            st.integers(0, 40),
            st.integers(0, 40),
        ),
        min_size=1,
    ),
    min_size=1,
)


@given(sources, st.one_of(st.none(), st.integers(1, 9)), st.integers(1, 15))
@examples(100)
def test_every_position_is_read_once_and_in_order(
    spans: dict[str, dict[str, Span]], rows: int | None, max_rows: int
) -> None:
    chosen = settings(Epochs(rows=rows, max_rows=max_rows), **{name: Rows() for name in spans})
    offsets = run(spans, chosen)
    for source, parts in spans.items():
        for name, span in parts.items():
            places = [p for start, end in cuts(offsets, source, name) for p in range(start, end)]
            assert places == list(range(span.end))
    for before, after in pairwise(offsets):
        assert after.epoch == before.epoch + 1
        assert after.before == before.watermarks
        assert all(after.watermarks[s] >= before.watermarks[s] for s in spans)
    assert [offset.final for offset in offsets].count(True) == 1
    if rows is not None:
        assert all(
            sum(end - start for start, end in offset.ranges[s].values()) <= rows
            for offset in offsets
            for s in spans
        )
