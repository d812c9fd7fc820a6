"""The runs of a case: cuts and watermarks stand where they should, and random runs crash, rescale and share the reading."""

from datetime import timedelta

import headrace as hr
from headrace.watermarks import END_OF_TIME, NO_WATERMARK
from headrace.windows import Tumbling
from tests.cases.harness.case import Case
from tests.cases.harness.playing import play
from tests.cases.harness.runs import POINTS, random_run, row_by_row, runs_of, whole
from tests.known_answers.timeline import us

MINUTE = timedelta(minutes=1)
#: Rows of two keys, none of them late for a watermark that waits for those to come.
GOOD = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:01    | a        | 1
            08:05    | b        | 2
            08:03    | a        | 4
            08:12    | a        | 8
            08:11    | b        | 16
        """,
    },
    pipeline=lambda rows: (
        rows.key_by("key").window(Tumbling(10 * MINUTE)).aggregate(total=hr.sum("value"))
    ),
    expected="total\n5\n2\n8\n16",
    any_order=True,
)
#: The last two rows come after the watermark has passed their window.
LATE = Case(
    inputs={
        "rows": """
            at: time | key: str | value: int
            08:01    | a        | 1
            08:05    | a        | 2
            watermark 08:10
            ---
            08:03    | a        | 4
            08:04    | a        | 8
        """,
    },
    pipeline=lambda rows: rows.select("value"),
    expected="value\n1\n2\n4\n8",
)


def test_runs_cut_as_they_say() -> None:
    ranges = [
        [epoch.ranges["rows"]["0"] for epoch in play(LATE, run).result.epochs]
        for run in (whole(LATE), row_by_row(LATE))
    ]
    assert ranges[0] == [(0, 2), (2, 4), (4, 4)]
    assert ranges[1] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4)]


def test_an_epoch_for_each_row_sees_every_watermark_between_them() -> None:
    marks = [e.watermarks["rows"] for e in play(LATE, row_by_row(LATE)).result.epochs]
    assert marks == [NO_WATERMARK, NO_WATERMARK, us("08:10") - 1, us("08:10") - 1, END_OF_TIME]
    marks = [e.watermarks["rows"] for e in play(GOOD, row_by_row(GOOD)).result.epochs]
    punctual = [us(time) - 1 for time in ("08:03", "08:03", "08:11", "08:11")]
    assert marks == [NO_WATERMARK, *punctual, END_OF_TIME]


def test_no_row_is_late_for_the_watermarks_of_random_runs() -> None:
    kinds = set()
    for seed in range(12):
        run = random_run(GOOD, seed)
        kinds.add((run.watermarks, len(run.arrivals["rows"])))
        counts = play(GOOD, run).result.counts
        assert sum(step.get("late", 0) for step in counts.values()) == 0, run
    assert kinds >= {("bounded", 1), ("bounded", 2), ("none", 1)}


def test_random_runs_crash_everywhere_rescale_and_share_reading() -> None:
    runs = [random_run(GOOD, seed) for seed in range(20)]
    assert {point for run in runs for _, point in run.crashes} == set(POINTS)
    assert {run.tasks for run in runs} == {1, 2, 3}
    assert len({(run.shards, *run.rescale.values()) for run in runs}) > 10
    assert all(play(GOOD, run).result.restarts > 0 for run in runs[:4])


def test_a_seed_gives_the_same_run_again() -> None:
    assert str(random_run(GOOD, 3)) == str(random_run(GOOD, 3)) != str(random_run(GOOD, 4))


def test_rows_of_two_streams_never_cross_a_border() -> None:
    case = Case(
        inputs={"left": "n: int\n1\n2\n---\n3", "right": "n: int\n4\n---\n5\n6"},
        pipeline=lambda left, right: left.union(right),
        expected="n\n1\n2\n3\n4\n5\n6",
    )
    for run in runs_of(case, 10):
        ends = list(zip(run.ends("left"), run.ends("right"), strict=True))
        assert ([2], [1]) in ends, run


def test_two_streams_are_read_in_many_turns() -> None:
    case = Case(
        inputs={"left": "n: int\n1\n2\n3\n4", "right": "n: int\n5\n6\n7\n8"},
        pipeline=lambda left, right: left.union(right),
        expected="n\n1\n2\n3\n4\n5\n6\n7\n8",
    )
    ahead = {
        left - right
        for seed in range(10)
        for run in [random_run(case, seed)]
        for (left,), (right,) in zip(run.ends("left"), run.ends("right"), strict=True)
    }
    assert ahead >= {-2, -1, 0, 1, 2}
