"""One keyed step on its own: both halves of it over epochs, on real chunk logs, with crashes, restores and rescaling.

    found = StepHarness(stream.key_by("key").window(...).aggregate(...), shards=2).run(epochs, crashes=[1])

No pipeline, no session: rows, watermarks and the clock come from the epochs alone. `OperatorHarness` is the same for
tests by hand, a row at a time.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.join_nodes import JoinStep
from headrace._graph.nodes import ERRORS, LATE, LATE_RIGHT, MAIN, KeyedProcess, Node, Repartition
from headrace._runtime import registry
from headrace._runtime.metrics import Metrics
from headrace._runtime.operator import Feeder, Moment
from headrace._runtime.rows import Origin, Rows
from headrace._runtime.state import MemoryArrays, MemoryChunkStore, ShardState
from headrace._runtime.state.rescale import rescale
from headrace._runtime.wire import decode_rows, encode_rows, split_by_shard
from headrace.errors import BuildError
from headrace.keys import KEY_GROUPS, groups_of
from headrace.stream import Stream
from headrace.testing.epochs import SidedRow, StepEpoch
from headrace.windowed import WindowResult

__all__ = ["PHASE", "TIME", "Outputs", "StepHarness", "moment", "step_of", "timed_rows"]

Outputs = dict[str, list[dict[str, Any]]]

#: Ends behind the last microsecond of the year 9999 are shown as that.
_LAST_US = 253_402_300_799_999_999
#: The columns of a stamped harness: the timestamp of a row, and whether it came out before the next step's tick.
TIME, PHASE = "@time", "@phase"


@dataclass
class StepHarness:
    """One keyed step on so many shards. Replicas live as long as nothing is restored."""

    #: What the builder returned for the step: its stream of results. Or its node.
    node: Any
    shards: int = 1
    batch_rows: int = 1_000_000
    #: Rows come out with their `TIME` and `PHASE`.
    stamped: bool = False
    stores: list[MemoryChunkStore] = field(init=False)
    #: What was counted, in epochs that failed too.
    metrics: Metrics = field(init=False, default_factory=lambda: Metrics("harness"))
    _arrays: list[MemoryArrays] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.node, Node):
            self.node = step_of(self.node)
        _check_shards(self.shards)
        self.stores = [MemoryChunkStore() for _ in range(self.shards)]
        self.restore()

    def restore(self, shards: int | None = None) -> None:
        """Forget all replicas; with another number of shards, move the state."""
        if shards is not None and shards != self.shards:
            _check_shards(shards)
            stores = [MemoryChunkStore() for _ in range(shards)]
            rescale(self.stores, registry.tables(self.node), stores)
            self.stores, self.shards = stores, shards
        self._arrays = [MemoryArrays() for _ in range(self.shards)]
        self.new_process()

    def new_process(self) -> None:
        """What a function had besides its state is gone."""
        if isinstance(self.node, KeyedProcess):
            self.node = replace(self.node, function=copy.copy(self.node.function))

    def run(
        self, epochs: Sequence[StepEpoch], *, restores: Mapping[int, int] | None = None,
        crashes: Sequence[int] = (),
    ) -> Outputs:  # fmt: skip
        """All outputs. `restores`: epoch -> shards from there on. `crashes`: epochs done twice."""
        outputs: Outputs = defaultdict(list)
        for number, epoch in enumerate(epochs):
            if restores and number in restores:
                self.restore(restores[number])
            if number in crashes:
                before = copy.deepcopy(self.stores)
                self.epoch(epoch)
                self.stores = before
                self.new_process()
            for output, rows in self.epoch(epoch).items():
                outputs[output] += rows
        return outputs

    def epoch(self, epoch: StepEpoch) -> Outputs:
        """One epoch on all shards, committed."""
        outputs: Outputs = defaultdict(list)
        early = self._feed(epoch.early, epoch.before, outputs, "before")
        rest = self._feed(epoch.rows, epoch.watermark, outputs, "after")
        for shard in range(self.shards):
            state = ShardState(
                registry.tables(self.node),
                self.stores[shard],
                self._arrays[shard],
                groups_of(shard, self.shards),
            )
            state.open()
            operator = registry.keyed(self.node, state)
            counted = Metrics(self.node.uid)
            operator.equip(counted, shard)
            for batch, side in early[shard]:
                operator.merge(batch, side)
            for output, rows in operator.tick(moment(epoch)):
                self._say(output, rows, outputs, "before")
            for batch, side in rest[shard]:
                operator.merge(batch, side)
            for output, rows in operator.settle():
                self._say(output, rows, outputs, "after")
            operator.outlook()
            state.commit()
            self.metrics.add(counted)
        return outputs

    @property
    def schemas(self) -> tuple[pa.Schema, ...]:
        """The columns of each input."""
        node = self.node
        sided = isinstance(node, KeyedProcess | JoinStep)
        return node.input_schemas if sided else (node.input_schema,)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names under which the step emits rows."""
        right = (LATE_RIGHT,) if isinstance(self.node, JoinStep) else ()
        sides = (name for name, _ in getattr(self.node, "side_outputs", ()))
        return (MAIN, LATE, *right, ERRORS, *sides)

    def _feed(
        self, rows: Sequence[Any], watermark: int, outputs: Outputs, phase: str
    ) -> dict[int, list[Any]]:
        fed: dict[int, list[Any]] = defaultdict(list)
        sided = [SidedRow(*row) for row in rows]
        for side, schema in enumerate(self.schemas):
            feeder = registry.feeder(self.node, side)
            mine = [row for row in sided if row.side == side]
            for part in _runs(mine, self.batch_rows):
                for output, out in feeder.feed(timed_rows(schema, part), watermark):
                    self._say(output, out, outputs, phase)
            for batch in feeder.flush():
                for shard, piece in self._split(feeder, batch):
                    fed[shard].append((decode_rows(encode_rows(piece)), side))
        return fed

    def _split(self, feeder: Feeder, batch: pa.RecordBatch) -> Iterator[tuple[int, Any]]:
        if feeder.everywhere:
            yield from ((shard, batch) for shard in range(self.shards))
        else:
            yield from split_by_shard(batch, self.shards, in_order=feeder.in_order)

    def _say(self, output: str, rows: Rows, outputs: Outputs, phase: str) -> None:
        _check_rows(rows, self.node.output_schema(output))
        if output == MAIN:
            _check_times(rows)
        assert rows.timestamps is not None
        for at, row in zip(rows.timestamps.tolist(), rows.batch.to_pylist(), strict=True):
            outputs[output].append(row | {TIME: at, PHASE: phase} if self.stamped else row)


def step_of(stream: Stream) -> Node:
    """The keyed step whose results a stream is."""
    if not isinstance(stream, Stream):
        raise BuildError(
            f"a harness takes the stream that a keyed step (a window, a join, a process function) returned,"
            f" not {stream!r}"
        )
    graph, at = stream._graph, stream._port.node  # noqa: SLF001 - what a builder made is taken apart
    if isinstance(stream, WindowResult):
        at = stream._step  # noqa: SLF001
    node = graph.nodes[at]
    if not node.keyed or isinstance(node, Repartition):
        raise BuildError(
            f"a harness runs one keyed step (a window, a join, a process function after key_by); '{node.uid}' is a"
            f" {node.verb}: pass the stream that the keyed step returned, or use run_local"
        )
    return node


def _check_shards(shards: int) -> None:
    if not 1 <= shards <= KEY_GROUPS:
        raise BuildError(f"a harness has 1 to {KEY_GROUPS} shards, not {shards!r}")


def moment(epoch: StepEpoch) -> Moment:
    """The time of an epoch, as its operator gets it."""
    return Moment(epoch.before, epoch.watermark, epoch.clock_before, epoch.clock)


def _runs(rows: Sequence[SidedRow], size: int) -> Iterator[Sequence[SidedRow]]:
    """Rows in batches of at most so many, each of one source partition; an empty one if there is none."""
    start = 0
    while start < max(1, len(rows)):
        end = start + 1
        while end < min(len(rows), start + size) and rows[end].place[:2] == rows[start].place[:2]:
            end += 1
        yield rows[start:end]
        start = end


def timed_rows(schema: pa.Schema, timed: Sequence[Any]) -> Rows:
    """Rows as they come out of a source."""
    rows = [SidedRow(*row) for row in timed]
    batch = pa.RecordBatch.from_pylist([dict(row.fields) for row in rows], schema=schema)
    times = np.array([row.at for row in rows], np.int64)
    if not rows or not rows[0].place[0]:
        return Rows(batch, times)
    source, partition, _ = rows[0].place
    offsets = np.array([row.place[2] for row in rows], np.int64)
    return Rows(batch, times, Origin(source, partition, offsets, partition))


def _check_times(rows: Rows) -> None:
    """A result has the last microsecond of its window, also one that is retracted: what counted it takes it back."""
    if "window_end" in rows.batch.schema.names:
        ends = rows.batch.column("window_end").cast(pa.int64()).to_numpy()
        representable = ends < _LAST_US
        assert (rows.timestamps == ends - 1)[representable].all()


def _check_rows(rows: Rows, schema: pa.Schema) -> None:
    """What every output must be, whatever is in it."""
    assert rows.batch.schema == schema
    rows.batch.validate(full=True)
    assert rows.timestamps is not None
    assert len(rows.timestamps) == len(rows)
