"""The harness of the golden cases finds planted mistakes: wrong, lost and doubled rows, and dependence on cuts, crashes and order."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import headrace as hr
from headrace.windows import Tumbling
from tests.cases.harness.case import Case, CaseError
from tests.cases.harness.checking import CaseFailed, check
from tests.cases.harness.discovery import all_cases
from tests.cases.harness.oracles import by_oracle
from tests.cases.harness.playing import play
from tests.cases.harness.runs import row_by_row

TEN = Tumbling(timedelta(minutes=10))
ROWS = """
    at: time | key: str | value: int
    08:01    | a        | 1
    08:05    | b        | 2
    08:03    | a        | 4
    08:12    | a        | 8
    08:11    | b        | 16
"""
EXPECTED = """
    key | window_end | total
    a   | 08:10      | 5
    b   | 08:10      | 2
    a   | 08:20      | 8
    b   | 08:20      | 16
"""


def summed(rows: hr.Stream) -> hr.Stream:
    return rows.key_by("key").window(TEN).aggregate(total=hr.sum("value"))


GOOD = Case(inputs={"rows": ROWS}, pipeline=summed, expected=EXPECTED, any_order=True)
#: The row 4 corrects a window that has fired.
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
        """
    },
    pipeline=lambda rows: (
        rows.key_by("key")
        .window(TEN)
        .allowed_lateness(timedelta(minutes=5))
        .aggregate(total=hr.sum("value"))
    ),
    expected="""
        key | window_end | pane    | firing | total
        a   | 08:10      | on_time | 0      | 3
        a   | 08:10      | late    | 1      | 15
    """,
    may_differ={"firings"},
    last_per=("key", "window_end"),
)


def failure(case: Case, seeds: int = 4) -> str:
    with pytest.raises(CaseFailed) as raised:
        check(case, "planted", seeds=seeds)
    return str(raised.value)


def test_a_good_case_passes() -> None:
    check(GOOD, "good", seeds=8)
    check(LATE, "late", seeds=8)


@pytest.mark.parametrize(
    "wrong",
    [
        EXPECTED.replace("| 5", "| 6"),
        EXPECTED.replace("    b   | 08:10      | 2\n", ""),
        EXPECTED + "    b   | 08:20      | 16\n",
        EXPECTED.replace("08:20      | 8", "08:30      | 8"),
    ],
    ids=["value", "row too few", "row twice", "window"],
)
def test_wrong_expected_rows_are_found_in_every_run(wrong: str) -> None:
    text = failure(replace(GOOD, expected=wrong))
    assert text.endswith("runs that differ: whole, row by row, seed 0, seed 1, seed 2, seed 3")


def test_a_failure_says_what_differs_and_how_to_repeat_it() -> None:
    text = failure(
        replace(LATE, expected=EXPECTED.replace("| 5", "| 6"), may_differ=(), last_per=())
    )
    assert text.startswith("planted\noutput 'main'\nmissing\nkey | window_end | total\n")
    assert "surplus\nkey | window_end | total\na   | 08:10      | 15\n" in text
    assert (
        "run: whole\nrows after each epoch: {'rows': [2, 4]}\nwatermarks in-band, shards 1" in text
    )


@pytest.mark.parametrize(
    "planted",
    [
        lambda rows: summed(rows.filter(hr.col("value") != 4)),
        lambda rows: summed(rows.union(rows.filter(hr.col("value") == 4))),
    ],
    ids=["lost", "doubled"],
)
def test_lost_and_doubled_rows_are_found(planted: Any) -> None:
    assert "a   | 08:10      | 5" in failure(replace(GOOD, pipeline=planted))


def test_a_dependence_on_cuts_that_the_case_does_not_declare_is_found() -> None:
    text = failure(replace(LATE, may_differ=(), last_per=()))
    assert "runs that differ: row by row" in text


def test_a_wrong_last_result_is_found_where_the_number_of_firings_may_differ() -> None:
    def only_first(rows: hr.Stream) -> hr.Stream:
        return LATE.pipeline(rows).filter(hr.col("firing") < 2)

    # As few epochs as possible have two firings, and an epoch for each row three.
    assert "runs that differ: row by row" in failure(replace(LATE, pipeline=only_first))


def test_a_firing_that_is_there_twice_is_found_where_the_number_of_firings_may_differ() -> None:
    def doubled(rows: hr.Stream) -> hr.Stream:
        firings = LATE.pipeline(rows)
        return firings.union(firings.filter(hr.col("firing") == 2))

    text = failure(replace(LATE, pipeline=doubled))
    twice = "fired more than once\nkey | window_end | firing\na   | 08:10      | 2\n"
    assert twice in text
    assert "runs that differ: row by row" in text


def test_a_retraction_is_no_second_firing_of_what_it_retracts() -> None:
    case = replace(
        LATE,
        pipeline=lambda rows: (
            rows.key_by("key")
            .window(TEN)
            .allowed_lateness(timedelta(minutes=5))
            .retracting()
            .aggregate(total=hr.sum("value"))
        ),
        expected="""
            key | window_end | firing | change | total
            a   | 08:10      | 0      | +I     | 3
            a   | 08:10      | 0      | -U     | 3
            a   | 08:10      | 1      | +U     | 15
        """,
    )
    check(case, "retracting", seeds=8)


def test_firings_may_differ_only_where_rows_have_the_number_of_their_firing() -> None:
    case = replace(
        LATE,
        pipeline=lambda rows: LATE.pipeline(rows).select("key", "window_end", "total"),
        expected="key | window_end | total\na | 08:10 | 3\na | 08:10 | 15",
    )
    assert "there is no column 'firing'" in failure(case)


def test_the_run_with_the_fewest_epochs_has_exactly_the_expected_firings() -> None:
    last = "key | window_end | pane | firing | total\na | 08:10 | late | 1 | 15"
    assert failure(replace(LATE, expected=last)).endswith("runs that differ: whole")


class Remembers(hr.ProcessFunction):
    """Keeps in memory what a crash does not take back."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def process_element(self, row: Any, ctx: Any) -> Any:
        self.seen.append(row.value)
        yield {"value": row.value, "times": self.seen.count(row.value)}


def test_a_result_that_a_crash_changes_is_found() -> None:
    case = Case(
        inputs={"rows": ROWS},
        pipeline=lambda rows: rows.process(Remembers(), schema={"value": int, "times": int}),
        expected="value | times\n1 | 1\n2 | 1\n4 | 1\n8 | 1\n16 | 1",
    )
    assert "runs that differ: seed" in failure(case, seeds=8)


def test_rows_in_another_order_are_found_if_the_case_orders_them() -> None:
    swapped = "key | value\na | 4\na | 1\na | 8\nb | 2\nb | 16"
    case = Case(
        inputs={"rows": ROWS}, pipeline=lambda rows: rows.select("key", "value"), expected=swapped
    )
    check(case, "in any order", seeds=2)
    assert "order of a\n" in failure(replace(case, ordered_per=("key",)))


CHANGES = "id: int | city: str | change: str\n"


def test_changes_are_compared_as_the_table_that_they_add_up_to() -> None:
    rows = f"{CHANGES} 1 | London | +I\n 1 | London | -U\n 1 | Turin | +U\n 2 | Rome | +I\n 2 | Rome | -D"
    case = Case(inputs={"rows": rows}, pipeline=lambda rows: rows, expected="id | city\n1 | Turin")
    check(case, "changes", seeds=4)
    text = failure(replace(case, expected="id | city\n1 | London"))
    assert "missing\nid | city\n1  | London\nsurplus\nid | city\n1  | Turin\n" in text


def test_a_retraction_of_what_is_not_there_is_found_though_the_table_is_right_in_the_end() -> None:
    rows = f"{CHANGES} 1 | London | -D\n 1 | London | +I"
    case = Case(inputs={"rows": rows}, pipeline=lambda rows: rows, expected="id | city")
    assert "retracted before it was added: 1 | London" in failure(case)


def test_an_output_that_is_not_expected_is_found() -> None:
    case = replace(GOOD, pipeline=lambda rows: {"main": summed(rows), "more": rows})
    assert "outputs are ['main', 'more'], expected are ['main']" in failure(case)


def test_a_column_that_is_not_there_is_found() -> None:
    assert "there is no column 'sum'" in failure(replace(GOOD, expected="key | sum\na | 5"))


def test_the_oracle_is_asked() -> None:
    run = row_by_row(GOOD)
    said = by_oracle(GOOD, run, play(GOOD, run))
    assert said is not None
    assert sorted(row["total"] for row in said["main"]) == [2, 5, 8, 16]


def test_an_oracle_of_another_opinion_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cases.harness.checking.by_oracle", lambda *_: {"main": []})
    assert "the engine agrees, the oracle does not: output 'main'\nmissing" in failure(GOOD)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"may_differ": {"mood"}}, "mood"),
        ({"may_differ": {"firings"}}, "belong together"),
        ({"last_per": ("key",)}, "belong together"),
        ({"ordered_per": ("kye",)}, "kye"),
        ({"xfail": "broken"}, "who must act"),
    ],
)
def test_a_case_that_contradicts_itself_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(CaseError, match=message):
        replace(GOOD, **wrong)


def test_every_case_has_a_unique_name() -> None:
    names = [name for name, _ in all_cases()]
    assert len(names) == len(set(names)) > 100
