"""Look-up joins of one batch of orders, for tests."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace._runtime.joins.lookup import LookupJoin
from headrace._runtime.rows import Origin, Rows
from headrace.connectors import memory
from headrace.lookups import LookupFunction
from headrace.schema import as_schema, row_class

ORDERS = pa.schema({"id": pa.int64(), "customer": pa.int64()})
NAMED = {"name": str, "level": int}
ROW = row_class(as_schema(NAMED))


@dataclass
class Customer:
    name: str
    level: int


class Customers(LookupFunction[int, Any]):
    """Customers below 100; of 13 nothing can be told."""

    schema = NAMED

    def __init__(self, **options: Any) -> None:
        self.calls: list[list[int]] = []
        self.bad: dict[int, Exception] = {}
        vars(self).update(options)

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, Any]:
        self.calls.append(list(keys))
        await asyncio.sleep(0)
        for key in keys:
            if key in self.bad:
                raise self.bad[key]
        return {key: {"name": f"c{key}", "level": key % 3} for key in keys if key < 100}


def orders(*customers: int | None) -> Rows:
    count = len(customers)
    batch = pa.RecordBatch.from_pydict({"id": range(count), "customer": customers}, schema=ORDERS)
    return Rows(batch, np.arange(count) * 10, Origin("orders", "0", np.arange(100, 100 + count)))


def step(table: Any, rows: pa.Schema = ORDERS, on: Any = "customer", **options: Any) -> LookupJoin:
    env = hr.Environment("joined")
    stream = env.from_source(memory.MemorySource([], rows), uid="orders")
    stream.join_lookup(table, on=on, uid="it", **options)
    return LookupJoin(env.graph.nodes[-1])  # type: ignore[arg-type]


def outputs(operator: LookupJoin, rows: Rows) -> dict[str, Rows]:
    return dict(operator.process(rows))


def column(rows: Rows, name: str) -> list[Any]:
    return rows.batch.column(name).to_pylist()
