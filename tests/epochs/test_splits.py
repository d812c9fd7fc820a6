from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._epochs.offset import Offset
from headrace._epochs.splits import ROWS_PER_TASK, Slice, split
from headrace.endpoints import Source
from tests.examples import examples


class Kind:
    """As much of a source as `split` looks at."""

    def __init__(self, *, splittable: bool = True, row_positions: bool = True) -> None:
        self.splittable, self.row_positions = splittable, row_positions


def kinds(**sources: Kind) -> Any:
    return sources


def offset(**sources: dict[str, tuple[int, int]]) -> Offset:
    return Offset(0, sources, {}, {}, 0)


def test_a_small_epoch_is_one_task() -> None:
    small = offset(s={"0": (0, 100), "1": (5, 9)})
    assert split(small, kinds(s=Kind()), 4) == [[Slice("s", "0", 0, 100), Slice("s", "1", 5, 9)]]


def test_an_epoch_without_rows_is_one_task_for_the_ticks() -> None:
    assert split(offset(s={"0": (7, 7)}), kinds(s=Kind()), 4) == [[]]


def test_a_large_range_is_split_over_the_tasks() -> None:
    parts = split(offset(s={"0": (10, 1_000_010)}), kinds(s=Kind()), 2)
    assert parts == [[Slice("s", "0", 10, 500_010)], [Slice("s", "0", 500_010, 1_000_010)]]


def test_a_range_of_a_source_that_cannot_be_split_stays_whole() -> None:
    whole = offset(s={"0": (0, 100_000), "1": (0, 100_000)})
    parts = split(whole, kinds(s=Kind(splittable=False)), 4)
    assert sorted(piece for part in parts for piece in part) == [
        Slice("s", "0", 0, 100_000),
        Slice("s", "1", 0, 100_000),
    ]
    assert len(parts) == 2


def test_a_few_files_are_worth_a_few_tasks() -> None:
    files = kinds(f=Kind(row_positions=False))
    assert len(split(offset(f={"files": (0, 8)}), files, 2)) == 2
    assert len(split(offset(f={"files": (0, 1)}), files, 2)) == 1


ranges = st.dictionaries(
    st.sampled_from("st"),
    st.dictionaries(
        st.sampled_from("012"),
        st.tuples(st.integers(0, 9), st.integers(0, 90_000)).map(lambda t: (t[0], t[0] + t[1])),
    ),
)


@given(ranges, st.integers(1, 5), st.booleans())
@examples(100)
def test_every_position_is_in_one_task_and_tasks_are_balanced(
    sources: dict[str, dict[str, tuple[int, int]]], tasks: int, splittable: bool
) -> None:
    known: dict[str, Source] = kinds(s=Kind(splittable=splittable), t=Kind())
    parts = split(Offset(0, sources, {}, {}, 0), known, tasks)
    assert 1 <= len(parts) <= tasks
    for source, partitions in sources.items():
        for name, (start, end) in partitions.items():
            pieces = [p for part in parts for p in part if p[:2] == (source, name)]
            borders = [start, *(piece.end for piece in pieces)]
            assert [piece.start for piece in pieces] == borders[:-1]
            assert borders[-1] == end
    if splittable:
        sizes = [sum(piece.end - piece.start for piece in part) for part in parts]
        assert max(sizes) - min(sizes) <= len(parts)
        assert len(parts) == 1 or min(sizes) >= ROWS_PER_TASK - len(parts)


@pytest.mark.parametrize("tasks", [1, 3])
def test_one_position_more_than_the_tasks_can_share_is_not_lost(tasks: int) -> None:
    parts = split(offset(s={"0": (0, 3 * ROWS_PER_TASK + 1)}), kinds(s=Kind()), tasks)
    assert sum(piece.end - piece.start for part in parts for piece in part) == 60_001


def test_a_partition_that_a_generator_listens_to_is_read_by_one_task() -> None:
    large = offset(s={"0": (0, 100_000), "1": (0, 100_000)})
    parts = split(large, kinds(s=Kind()), 4, whole={"s"})
    assert sorted(piece for part in parts for piece in part) == [
        Slice("s", "0", 0, 100_000),
        Slice("s", "1", 0, 100_000),
    ]
