"""Random pipelines on `_local` agree with the row-at-a-time reference, whatever happens on the way."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from headrace._local.job import POINTS
from headrace.testing import cut, fail, run_local
from tests.examples import examples
from tests.local.cases import AGGREGATES, STEPS, Case, build, expected, found, row
from tests.local.choices import IN_ORDER, TRIGGERS, UNTIMED, WINDOWS

ACCUMULATIONS = ["accumulating", "accumulating", "discarding", "retracting"]

#: A case that fails is printed as it is: to shrink a whole job takes longer than to read it.
MODERATE = examples(25, phases=[Phase.explicit, Phase.generate])


@st.composite
def streams(draw: st.DrawFn) -> tuple[Any, ...]:
    """One or two sources of one to three partitions; time goes up with jumps back."""
    numbers = iter(range(1, 10_000))
    back = st.sampled_from([0, 0, 0, -1, -2, -5, -9, -17, -30])
    made = []
    for _ in range(draw(st.integers(1, 2))):
        partitions = []
        for _ in range(draw(st.integers(1, 3))):
            at = 0
            rows: list[Any] = []
            for step, jump, key, amount in draw(
                st.lists(
                    st.tuples(
                        st.integers(0, 4),
                        back,
                        st.sampled_from(["a", "b", "c", "d", None]),
                        st.sampled_from([None, 0, 1, 2, 3, 7]),
                    ),
                    min_size=4,
                    max_size=16,
                )
            ):
                at += step
                if mark := draw(st.sampled_from([None] * 8 + [cut(), fail()])):
                    rows.append(mark)
                rows.append(row(_moment(draw, at + jump), key, amount, next(numbers)))
            partitions.append(rows)
        made.append(partitions)
    return tuple(made)


def _moment(draw: st.DrawFn, second: int) -> float | datetime | None:
    """Mostly this second or the last instant before it; now and then what cannot be used."""
    usual = [float(second), second - 0.000_001] * 15
    return draw(st.sampled_from([*usual, None, datetime(9999, 12, 31, tzinfo=UTC)]))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A whole job and how it is run."""
    slide = draw(st.sampled_from([2, 5, 10]))
    shards = draw(st.integers(1, 3))
    epochs = st.integers(0, 8)
    return Case(
        streams=draw(streams()),
        bounds=(draw(st.integers(0, 6)), draw(st.integers(0, 6))),
        steps=tuple(draw(st.lists(st.sampled_from(sorted(STEPS)), max_size=3))),
        key=draw(st.sampled_from(["column", "function"])),
        size=slide * draw(st.integers(1, 4)),
        slide=slide,
        offset=draw(st.sampled_from([0, 1])),
        lateness=draw(st.sampled_from([20, 3, 0])),
        aggregates=tuple(
            draw(st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True))
        ),
        second=draw(st.sampled_from([5, 15, 0])),
        second_lateness=draw(st.sampled_from([0, 7])),
        epoch_rows=draw(st.integers(1, 12)),
        shards=shards,
        tasks=draw(st.integers(1, 3)),
        rescale=draw(st.dictionaries(epochs, st.integers(1, 4), max_size=2)),
        crashes=tuple(draw(st.sets(st.tuples(epochs, st.sampled_from(POINTS)), max_size=3))),
    )


@st.composite
def other_windows(draw: st.DrawFn) -> Case:
    """The same jobs with windows of every kind, in both times, with triggers and policies."""
    kind = draw(st.sampled_from(sorted(WINDOWS)))
    plain = kind in ("look_back", "count", "sliding")
    trigger = "" if plain else draw(st.sampled_from(["", "", *TRIGGERS]))
    accumulation = "accumulating" if plain else draw(st.sampled_from(ACCUMULATIONS))
    case = draw(cases())
    changed: dict[str, Any] = {
        "kind": kind,
        "time": draw(st.sampled_from(["event", "event", "processing"])),
        "trigger": trigger,
        "accumulation": accumulation,
        "on_late": draw(st.sampled_from(["side_output", "own_window", "drop"])),
    }
    if changed["time"] == "processing":
        # All rows of an epoch have one time, so none of several partitions is the first or the last.
        known = tuple(name for name in case.aggregates if name not in ("earliest", "latest"))
        changed["aggregates"] = known or ("rows",)
    if kind in UNTIMED:
        changed |= {"second": 0, "on_late": "side_output"}
    if {kind, trigger} & set(IN_ORDER):
        # A union with itself has no order of its rows.
        ordered = tuple(step for step in case.steps if step != "self_union")
        changed |= {"streams": (case.streams[0][:1],), "tasks": 1, "steps": ordered}
    return replace(case, **changed)


def disagreement(case: Case) -> str | None:
    """Which sink differs from the reference, and how."""
    env, sinks = build(case)
    result = run_local(
        env,
        case.shards,
        tasks=case.tasks,
        attempts=100,
        rescale=case.rescale,
        crashes=case.crashes,  # type: ignore[arg-type]
    )
    assert result.finished
    right, mine = expected(case, result.epochs), found(sinks)
    for uid in right:
        if right[uid] != mine[uid]:
            return f"{uid}: missing {right[uid] - mine[uid]}, too much {mine[uid] - right[uid]}"
    return None


@MODERATE
@given(cases())
def test_any_pipeline_agrees_with_the_reference(case: Case) -> None:
    assert disagreement(case) is None


@MODERATE
@given(other_windows())
def test_any_window_agrees_with_the_reference(case: Case) -> None:
    assert disagreement(case) is None


@MODERATE
@given(cases(), st.sampled_from(POINTS), st.integers(0, 6), st.integers(1, 3))
def test_crash_and_another_number_of_shards_change_nothing(
    case: Case, point: Any, epoch: int, shards: int
) -> None:
    disturbed = Case(**{**vars(case), "crashes": ((epoch, point),), "rescale": {epoch + 1: shards}})
    assert disagreement(disturbed) is None


def _late_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._runtime.windows.panes import feeder

    real = feeder.first_open_pane
    monkeypatch.setattr(feeder, "first_open_pane", lambda node, mark: real(node, mark + 1))


def _old_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._runtime.segment import Segment
    from headrace._runtime.tick import Tick

    monkeypatch.setattr(
        Segment,
        "_watermark",
        lambda self, node, _: Tick.at(self._tick, self._plan.feeds[node], before=True),
    )


def _stale_replica_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._runtime.state import ShardState

    monkeypatch.setattr(ShardState, "_reached", lambda self, _: self._manifest.sequence)


def _before_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace._runtime import host

    monkeypatch.setattr(host, "BEFORE", host.AFTER)


@pytest.mark.parametrize(
    "plant", [_late_by_one, _old_watermark, _stale_replica_is_believed, _before_comes_after]
)
def test_planted_bug_is_found(plant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find(
        cases(),
        lambda case: disagreement(case) is not None,
        settings=settings(MODERATE, max_examples=150, derandomize=False, database=None),
        random=random.Random(1),
    )
