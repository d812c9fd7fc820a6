from dataclasses import dataclass
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

from headrace import errors
from headrace._graph import nodes
from headrace._plan.laws import laws_of
from headrace.config import Retry


@dataclass
class Priced:
    auction: int
    euros: float


@dataclass
class Stranger:
    name: str


async def price(row) -> Priced:
    return Priced(row.auction, row.price / 100)


class Client:
    async def open(self):
        pass

    async def __call__(self, row) -> Priced:
        return await price(row)


def node_of(stream):
    return stream._graph.nodes[stream._port.node]


@pytest.mark.parametrize("function", [price, Client(), Client().__call__, partial(price)])
def test_columns_come_from_the_annotation(bids, function):
    assert bids.map_async(function).schema == pa.schema(
        [("auction", pa.int64()), ("euros", pa.float64())]
    )


def test_columns_come_from_schema(bids):
    async def found(row):
        return {"euros": row.price / 100}

    assert bids.map_async(found, schema={"euros": float}).schema.names == ["euros"]
    with pytest.raises(errors.BuildError, match=r"map_async cannot tell .*schema=Result"):
        bids.map_async(found)


def test_what_is_not_said_is_safe(bids):
    node = node_of(bids.map_async(price))
    assert isinstance(node, nodes.MapAsync)
    assert (node.ordered, node.capacity, node.limit_us, node.retry) == (True, 100, 10_000_000, None)
    assert (node.on_error, node.on_timeout) == ("fail", "fail")


def test_what_is_said_is_kept(bids):
    retry = Retry(attempts=2)
    node = node_of(
        bids.map_async(
            price,
            ordered=False,
            capacity=7,
            timeout=timedelta(milliseconds=5),
            retry=retry,
            on_timeout="dead_letter",
        )
    )
    assert (node.ordered, node.capacity, node.limit_us, node.retry) == (False, 7, 5_000, retry)
    assert (node.on_error, node.on_timeout) == ("fail", "dead_letter")
    assert node_of(bids.map_async(price, timeout=None)).limit_us is None
    assert node_of(bids.map_async(price, on_error="dead_letter")).on_timeout == "dead_letter"


def test_errors_are_dead_letters(bids):
    assert bids.map_async(price).errors.schema == nodes.ERRORS_SCHEMA


def test_a_row_is_one_row_or_a_dead_letter(env, bids, sink):
    bids.map_async(price, uid="price").sink_to(sink)
    assert laws_of(env.plan())["price"] == "one"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"capacity": 0}, "capacity=0"),
        ({"capacity": 1.5}, "whole number"),
        ({"timeout": 10}, "timeout must be a datetime.timedelta"),
        ({"timeout": timedelta(0)}, "timeout must be longer than zero"),
        ({"retry": 3}, r"hr\.Retry\(attempts"),
        ({"on_error": "ignore"}, 'on_error=.*"dead_letter"'),
        ({"on_timeout": "ignore"}, 'on_timeout=.*"dead_letter"'),
    ],
)
def test_options_are_checked(bids, options, text):
    with pytest.raises(errors.BuildError, match=text):
        bids.map_async(price, **options)


def test_a_plain_function_is_refused(bids):
    with pytest.raises(errors.BuildError, match="the lambda is a plain one; write `async def`"):
        bids.map_async(lambda row: row)


@pytest.mark.parametrize("verb", ["map", "flat_map", "filter", "key_by"])
def test_a_coroutine_function_is_sent_here(bids, verb):
    with pytest.raises(errors.BuildError, match=r"coroutine function; .* Use map_async"):
        getattr(bids, verb)(Client())


def test_fields_that_are_not_there_are_found(bids):
    async def wrong(row) -> Priced:
        return Priced(row.auction, row.prise)

    async def foreign(row: Stranger) -> Priced:
        return Priced(1, 1.0)

    with pytest.raises(errors.SchemaError, match=r"no field 'prise' \(did you mean 'price'\?\)"):
        bids.map_async(wrong)
    with pytest.raises(errors.SchemaError, match=r"map_async with 'foreign'.*'name'"):
        bids.map_async(foreign)


def test_an_async_generator_is_refused(bids):
    async def several(row):
        yield Priced(1, 1.0)

    with pytest.raises(errors.BuildError, match=r"'several' .* one result a row"):
        bids.map_async(several, schema=Priced)
