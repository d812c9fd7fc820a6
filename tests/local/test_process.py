"""Random programs on `_local` agree with the interpreter, whatever happens on the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace._local.job import POINTS
from headrace.testing import cut, fail, run_local
from tests.local.program_jobs import ProgramJob, build, expected, found, kept
from tests.runtime.process.cases import RANDOM, fields, program_parts
from tests.runtime.process.programs import STATES


@st.composite
def jobs(
    draw: st.DrawFn,
    kind: str = "keyed",
    states: tuple[str, ...] = tuple(STATES),
    *,
    ordered: bool | None = None,
    on_error: str | None = None,
) -> ProgramJob:
    """A whole job and how it is run."""
    # Broadcast functions take rows as they come.
    in_order = False if kind == "broadcast" else ordered
    parts = draw(program_parts(states, ordered=in_order, on_error=on_error))
    numbers = st.integers(0, 8)
    return ProgramJob(
        kind=kind,
        uses=parts.uses,
        on_timers=parts.on_timers,
        streams=tuple(
            _partitions(draw, kind, side, parts) for side in range(1 if kind == "keyed" else 2)
        ),
        unit=parts.unit,
        ordered=parts.ordered,
        on_error=parts.on_error,
        bound=draw(st.integers(0, 4)),
        epoch_rows=draw(st.integers(2, 9)),
        shards=draw(st.integers(1, 3)),
        tasks=draw(st.integers(1, 2)),
        rescale=draw(st.dictionaries(numbers, st.integers(1, 4), max_size=2)),
        crashes=tuple(draw(st.sets(st.tuples(numbers, st.sampled_from(POINTS)), max_size=3))),
    )


def _partitions(draw: st.DrawFn, kind: str, side: int, parts: Any) -> tuple[Any, ...]:
    # Rules in two partitions have no order between them.
    most = 1 if (side or kind == "co") and not parts.ordered else 3
    numbers = iter(range(1000 * side, 1000 * side + 1000))
    made = []
    for partition in range(draw(st.integers(1, most))):
        at, rows = 0, []
        for step, back in draw(
            st.lists(
                st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, -1, -2, -4, -9])),
                min_size=3,
                max_size=14,
            )
        ):
            at += step
            if mark := draw(st.sampled_from([None] * 12 + [cut(), fail()])):
                rows.append(mark)
            row = fields(draw, kind, side, parts.programs, next(numbers))
            for key in {"key", "name"} & set(row):
                if row[key] is not None and not parts.ordered:
                    row[key] += str(partition)
            rows.append((at + back, row))
        made.append(tuple(rows))
    return tuple(made)


def disagreement(job: ProgramJob) -> str | None:
    """What differs from the interpreter, and how."""
    env, sinks = build(job)
    result = run_local(
        env,
        job.shards,
        tasks=job.tasks,
        attempts=100,
        rescale=job.rescale,
        crashes=job.crashes,  # type: ignore[arg-type]
        step=timedelta(microseconds=2),
    )
    assert result.finished
    right, state = expected(job, result.epochs)
    mine = found(sinks)
    for uid in right:
        if right[uid] != mine[uid]:
            return f"{uid}: missing {right[uid] - mine[uid]}, too much {mine[uid] - right[uid]}"
    there = kept(job, result.read_state)
    return None if there == state else f"state: {there} is not {state}"


@RANDOM
@given(jobs(ordered=False))
def test_any_program_agrees_with_the_interpreter(job: ProgramJob) -> None:
    assert disagreement(job) is None


@RANDOM
@given(jobs(ordered=True))
def test_programs_whose_rows_come_in_order(job: ProgramJob) -> None:
    assert disagreement(job) is None


@RANDOM
@given(jobs("co"))
def test_programs_of_two_inputs(job: ProgramJob) -> None:
    assert disagreement(job) is None


@RANDOM
@given(jobs("broadcast"))
def test_programs_with_rules(job: ProgramJob) -> None:
    assert disagreement(job) is None
