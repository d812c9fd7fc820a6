"""Arenas hold any Arrow type and give back exactly what was appended."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._runtime.state import MemoryArrays
from headrace._runtime.state.arena import Arena
from tests.examples import examples

numbers = st.none() | st.integers(-5, 5)
texts = st.none() | st.text(max_size=4)
CASES = [
    (pa.string(), st.text(max_size=5)),
    (pa.large_binary(), st.binary(max_size=5)),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.decimal128(9, 2), st.integers(-999, 999).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.list_(pa.int64()), st.lists(numbers, max_size=3)),
    (pa.large_list(pa.bool_()), st.lists(st.none() | st.booleans(), max_size=3)),
    (
        pa.list_(pa.list_(pa.string())),
        st.lists(st.none() | st.lists(texts, max_size=2), max_size=3),
    ),
    (
        pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.list_(pa.float64()))]),
        st.fixed_dictionaries(
            {
                "a": numbers,
                "b": texts,
                "c": st.none() | st.lists(st.none() | st.just(0.5), max_size=2),
            }
        ),
    ),
    (
        pa.map_(pa.string(), pa.int64()),
        st.dictionaries(st.text(max_size=2), numbers).map(lambda d: [*d.items()]),
    ),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[str(kind) for kind, _ in CASES])
@examples(30)
@given(choice=st.data())
def test_values_come_back_as_they_went_in(kind, values, choice):
    arena, model = Arena(kind, MemoryArrays()), []
    for _ in range(choice.draw(st.integers(1, 5))):
        batch = choice.draw(st.lists(values, max_size=12))
        skipped = choice.draw(st.integers(0, len(batch)))
        assert arena.append(pa.array(batch, type=kind).slice(skipped)) == len(model)
        model += batch[skipped:]
    rows = choice.draw(st.lists(st.none() | st.integers(0, max(0, len(model) - 1)), max_size=9))
    rows = [row for row in rows if row is None or model]
    taken = arena.take(pa.array(rows, type=pa.int64()))
    taken.validate(full=True)
    assert taken.type == kind
    assert taken.to_pylist() == [None if row is None else model[row] for row in rows]
    if pa.types.is_nested(kind) and not pa.types.is_struct(kind):
        numbers = np.array([row for row in rows if row is not None], np.int64)
        items = arena.items(numbers)
        items.validate(full=True)
        flat = [item for row in numbers for item in model[row]]
        assert [_pair(item) for item in items.to_pylist()] == flat


def _pair(item):
    return tuple(item.values()) if isinstance(item, dict) else item


def test_an_arena_grows():
    arena = Arena(pa.string(), MemoryArrays())
    for start in range(0, 10_000, 1_000):
        arena.append(pa.array([f"value {n}" for n in range(start, start + 1_000)]))
    assert arena.rows == 10_000
    assert arena.take(pa.array([9_999, 0])).to_pylist() == ["value 9999", "value 0"]


@pytest.mark.parametrize("longest", [3, 400], ids=["short lists are gathered", "long ones copied"])
def test_items_of_lists_in_any_order_and_at_any_places(longest: int) -> None:
    chance = random.Random(longest)
    kind = pa.list_(pa.struct([("n", pa.int64()), ("text", pa.string()), ("flag", pa.bool_())]))
    arena, lists = Arena(kind, MemoryArrays()), []
    for number in range(60):
        sizes = range(chance.randrange(longest))
        lists.append(
            [
                {"n": n, "text": None if n % 5 == 0 else "x" * (n % 4), "flag": n % 2 == 0}
                for n in sizes
            ]
        )
        arena.append(pa.array([lists[number]], kind))
    for rows in ([], [7], range(60), range(20, 40), [3, 4, 5, 9, 10, 50], [8, 2, 2, 30]):
        numbers = np.array(rows, np.int64)
        flat = [item for row in rows for item in lists[row]]
        assert arena.items(numbers).to_pylist() == flat
        places = np.array([0, len(flat) - 1, len(flat) // 2] if flat else [], np.int64)
        assert arena.items(numbers, places).to_pylist() == [flat[place] for place in places]
