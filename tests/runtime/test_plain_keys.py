"""Keys get one form and one number each."""

import pyarrow as pa
import pytest

from headrace._runtime.plain_keys import number_keys, plain_key, plain_key_type


def test_keys_are_numbered_by_first_appearance() -> None:
    numbers, firsts = number_keys([pa.array(["b", "a", "b", "c", "a"])])
    assert numbers.tolist() == [0, 1, 0, 2, 1]
    assert firsts.tolist() == [0, 1, 3]


def test_all_columns_of_a_key_count() -> None:
    columns = [pa.array([1, 1, 2, 2, 1]), pa.array(["x", "y", "x", "x", "x"]), pa.array([True] * 5)]
    numbers, firsts = number_keys(columns)
    assert numbers.tolist() == [0, 1, 2, 2, 0]
    assert firsts.tolist() == [0, 1, 2]


def test_null_is_a_key_of_its_own() -> None:
    for column in (pa.array(["", None, "", None]), pa.array([0, None, 0, None])):
        numbers, firsts = number_keys([column, pa.array([1, 1, 1, 1])])
        assert numbers.tolist() == [0, 1, 0, 1]
        assert firsts.tolist() == [0, 1]


def test_no_rows_have_no_numbers() -> None:
    numbers, firsts = number_keys([pa.array([], pa.string()), pa.array([], pa.int64())])
    assert (len(numbers), len(firsts)) == (0, 0)


def test_dictionaries_and_views_become_plain() -> None:
    column = pa.array(["a", None, "a"]).dictionary_encode()
    assert plain_key(column).to_pylist() == ["a", None, "a"]
    assert plain_key_type(column.type) == pa.string()
    assert plain_key_type(pa.string_view()) == pa.large_string()


def test_equal_floats_get_equal_bytes() -> None:
    for kind in (pa.float32(), pa.float64()):
        keys = plain_key(pa.array([0.0, -0.0, float("nan"), -float("nan")], kind))
        pairs = keys.to_numpy().reshape(2, 2)
        assert [a.tobytes() == b.tobytes() for a, b in pairs] == [True, True]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()])
def test_whole_numbers_near_and_far_are_numbered_alike(kind: pa.DataType) -> None:
    edge = {pa.int8(): -128, pa.uint8(): 255, pa.int64(): -(2**63), pa.uint64(): 2**64 - 1}[kind]
    for near in ([5, 3, 5, 4, 3], [5, 5, 3, 5], [7]):
        for more in ([], [edge], [edge, 100]):
            keys = pa.array([*near, *more, *near], kind)
            numbers, firsts = number_keys([keys])
            seen = list(dict.fromkeys(keys.to_pylist()))
            assert numbers.tolist() == [seen.index(key) for key in keys.to_pylist()]
            assert [keys[first].as_py() for first in firsts] == seen
