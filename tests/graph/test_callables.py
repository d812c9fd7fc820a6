"""Which functions are refused before a job starts, and which are let pass because they may be right."""

import contextlib

import pyarrow as pa
import pytest

from headrace._graph.callables import check_row_function, describe_callable, require_callable
from headrace.errors import BuildError, SchemaError

ROWS = pa.schema([("price", pa.int64()), ("channel", pa.string())])


def check(function, *, may_yield=False):
    check_row_function(function, "map", ROWS, may_yield=may_yield)


def reads_in_a_branch(row):
    if row.channel:
        return row.price
    return row.prize


def reads_in_a_loop(row):
    return [row.prize for _ in range(3)]


def reads_in_a_closure(row):
    later = lambda: row.price
    return later() + row.prize


def calls_a_method_of_it(row):
    return row.prize.upper()


def reads_two(row):
    return row.price + row.prize


def yields_it(row):
    yield row.prize


def yields_many(row):
    for part in row.prize:
        yield part * 2


class Reader:
    def read(self, row):
        return row.prize


@pytest.mark.parametrize(
    "function",
    [
        lambda row: row.prize,
        lambda row: row["prize"],
        lambda row, factor=2: factor * row.prize,
        reads_in_a_branch,
        reads_in_a_loop,
        reads_in_a_closure,
        calls_a_method_of_it,
        reads_two,
        Reader().read,
    ],
)
def test_reading_a_field_that_is_not_there_is_refused(function):
    with pytest.raises(
        SchemaError, match=r"'prize' \(did you mean 'price'\?\).*channel \(string\)"
    ):
        check(function)


@pytest.mark.parametrize("function", [yields_it, yields_many])
def test_generators_are_read_too(function):
    with pytest.raises(SchemaError, match="'prize'"):
        check(function, may_yield=True)


def asks_first(row):
    return row.prize if hasattr(row, "prize") else 0


def catches(row):
    try:
        return row.prize
    except AttributeError:
        return 0


def suppresses(row):
    with contextlib.suppress(AttributeError):
        return row.prize


def rebinds(row):
    row = row.channel
    return row.prize


def takes_anything(*rows):
    return rows[0].prize


class Callable:
    def __call__(self, row):
        return row.prize


@pytest.mark.parametrize(
    "function",
    [
        lambda row: row._asdict(),
        lambda row: row.price + row["price"],
        lambda row: row[0],
        lambda row: row.channel.prize,
        lambda row: row.channel + "prize",
        asks_first,
        catches,
        suppresses,
        rebinds,
        takes_anything,
        Callable(),
        dict,
        str,
    ],
)
def test_a_function_that_may_be_right_passes(function):
    check(function)


def test_a_builtin_that_hides_its_parameters_passes():
    require_callable(max, "map", "one row")


@pytest.mark.parametrize("function", [lambda: 1, lambda a, b: a + b, lambda *, row: row])
def test_a_function_must_take_one_argument(function):
    with pytest.raises(BuildError, match="with one argument, one row, but the lambda takes"):
        check(function)


def test_functions_are_called_by_their_names_in_messages():
    assert describe_callable(yields_it) == "'yields_it'"
    assert describe_callable(lambda row: row) == "the lambda"
    assert describe_callable(Callable()) == "the Callable"
