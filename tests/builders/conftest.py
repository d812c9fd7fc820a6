"""An environment, a source of bids in event time, and a sink that takes everything."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.endpoints import Enumerator, Publisher, Sink, Source, SourceBatch, Stager
from headrace.environment import Environment
from headrace.stream import SourceStream
from headrace.watermarks import WatermarkStrategy

BIDS = pa.schema(
    [
        pa.field("auction", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("channel", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("date_time", pa.timestamp("ms", tz="UTC")),
        pa.field("local_time", pa.timestamp("us")),
    ]
)


class Nothing(Source):
    """A source that declares rows and has none."""

    def __init__(self, schema: pa.Schema, name: str = "nothing") -> None:
        self._schema = schema
        self._name = name

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def signature(self) -> dict[str, Any]:
        return {"name": self._name}

    def enumerator(self, directory: Path) -> Enumerator:
        raise NotImplementedError

    def read(self, partition: str, start: int, end: int, directory: Path) -> Iterator[SourceBatch]:
        raise NotImplementedError


class Void(Sink):
    """A sink that is never opened."""

    def stager(self, context: Any, epoch: int, task: str) -> Stager:
        raise NotImplementedError

    def publisher(self, context: Any) -> Publisher:
        raise NotImplementedError


@pytest.fixture
def env() -> Environment:
    return Environment("job")


@pytest.fixture
def sink() -> Sink:
    return Void()


@pytest.fixture
def source() -> Callable[..., Source]:
    return Nothing


@pytest.fixture
def strategy() -> WatermarkStrategy:
    bound = timedelta(seconds=4)
    return WatermarkStrategy.bounded_out_of_orderness(bound).with_timestamps("date_time")


@pytest.fixture
def bids(env: Environment, strategy: WatermarkStrategy) -> SourceStream:
    return env.from_source(Nothing(BIDS), watermarks=strategy, uid="bids")
