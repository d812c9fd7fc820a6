"""What a function on columns cannot have is refused where the step is built."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.connectors.memory import MemorySource
from headrace.errors import BuildError

ROW = {"user": str, "time": int}
HOUR = timedelta(hours=1)


class Passing(hr.KeyedBatchFunction):
    def process_batch(self, batch: pa.RecordBatch, ctx: Any) -> pa.RecordBatch:
        return batch


class Telling(Passing):
    def on_timers(self, timers: pa.RecordBatch, ctx: Any) -> None:
        """Nothing."""


@dataclass
class Money:
    cents: int


CENTS = hr.state.Codec(storage=int, encode=lambda m: m.cents, decode=Money)


class Lists(Passing):
    kept: hr.state.List[int]


class Sums(Passing):
    kept: hr.state.Reducing[int] = hr.state.keep(reduce=operator.add)


class Described(Passing):
    def open(self, ctx: Any) -> None:
        self.kept = ctx.get_map_state(hr.state.MapStateDescriptor("kept", str, value_type=int))


class Coded(Passing):
    kept: hr.state.Value[Annotated[Money, CENTS]] = hr.state.FOREVER


class Many(Passing):
    price: hr.state.Value[Decimal] = hr.state.FOREVER
    words: hr.state.Value[list[str]] = hr.state.FOREVER
    at: hr.state.Value[Money] = hr.state.FOREVER


def built(function: Any, *keys: str, schema: Any = ROW, **options: Any) -> Any:
    stream = hr.Environment("built").from_source(MemorySource([], ROW), uid="in")
    return stream.key_by(*keys or ["user"]).process(function, schema=schema, uid="batch", **options)


@pytest.mark.parametrize(
    ("function", "options", "sentence"),
    [
        (Passing(), {"schema": None}, "pass schema="),
        (Passing(), {"on_error": "dead_letter"}, "nobody can tell on which of them it fails"),
        (Lists(), {}, r"Lists\.kept: .* only hr\.state\.Value has, and this is a list; .*Keyed"),
        (Sums(), {}, "this is a reducing; .* hr.KeyedProcessFunction, row by row"),
        (Described(), {}, "this is a map"),
        (Coded(), {}, "a codec works on one object at a time"),
    ],
)
def test_what_needs_one_row_or_key_at_a_time_is_refused(
    function: Any, options: Any, sentence: str
) -> None:
    with pytest.raises(BuildError, match=sentence):
        built(function, **options)


def test_order_is_refused() -> None:
    stream = hr.Environment("built").from_source(
        MemorySource([], {"user": str, "at": datetime}),
        watermarks=hr.WatermarkStrategy.bounded_out_of_orderness(HOUR).with_timestamps("at"),
        uid="in",
    )
    with pytest.raises(BuildError, match=r"ordered=True, where timers come between rows"):
        stream.key_by("user").process(Passing(), schema=ROW, ordered=True)


def test_a_key_named_time_is_refused_if_there_are_timers() -> None:
    with pytest.raises(BuildError, match="no key can have that name"):
        built(Telling(), "user", "time")
    assert built(Passing(), "user", "time").uid == "batch"


def test_values_of_all_types_are_taken() -> None:
    assert built(Many()).uid == "batch"
