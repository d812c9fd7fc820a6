"""The state of a job, read from its checkpoint through Spark's state reader, while the job runs or after it.

A read takes no lease and writes nothing. What it sees is one durable epoch as a whole: Spark keeps the state of
the last twenty, and the stamps in the epoch's manifest prove that the chunk logs are those of that epoch. A
job that goes on fast may remove files under a slow reader, so a read that failed is tried once more, on what
is the last epoch then.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headrace._commit.checkpoint import JobRecord, durable_epoch, peek
from headrace._commit.manifest import read_manifest
from headrace._commit.paths import Layout
from headrace._graph.nodes import KeyedProcess
from headrace._graph.plan import Plan
from headrace._plan.settings import RunSettings
from headrace._runtime.process.reads.query import Query
from headrace._runtime.process.reads.tables import find_place, recorded_places, state_table
from headrace._runtime.state import MemoryChunkStore
from headrace._runtime.state.log import Manifest
from headrace._spark.errors import translate
from headrace._spark.session import EmbeddedSpark, open_spark
from headrace._spark.settings import query_settings
from headrace._spark.shard_ids import shard_ids
from headrace.errors import CheckpointDamaged, CheckpointError
from headrace.keys import KEY_GROUPS, groups_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["StateReader", "query_state", "read_state", "recorded_job"]

_BODY = "user_map_value.body"
#: Chunks have up to 16 MB; a batch of them must stay below 2 GB.
_CHUNKS_A_BATCH = "16"
#: Spark refuses to collect more than a gigabyte at once.
_PORTION_BYTES = 2**28


def recorded_job(checkpoint: str | os.PathLike[str]) -> tuple[Layout, JobRecord]:
    """Whose state lies there."""
    layout = Layout(Path(checkpoint).expanduser().absolute())
    record = peek(layout.root)
    if record is None:
        raise CheckpointError(
            f"{layout.root} holds no checkpoint; give the directory that the job has as checkpoint="
        )
    return layout, record


def read_state(checkpoint: str | os.PathLike[str], uid: str, name: str) -> pa.Table:
    """The state that a process function keeps under a name, of all keys, behind the last durable epoch.

    It has the key columns, and then `value`; for a map `map_key` and `value`, one row an entry; for a list
    `ordinal` and `value`, one row an item. Values are in the types in which they are stored. The job may be
    running, stopped or finished: nothing is locked and nothing changes.

    hr.read_state("state/fraud", "detector", "small")
    """
    layout, record = recorded_job(checkpoint)
    operator, place = find_place(record.states, uid, name)
    # It has no log of its own, and that of the job is not ours to write to.
    spark = open_spark(record.job, master=None, session=None, log=Path(os.devnull), verbose=False)
    return state_table(place, StateReader(spark, layout, record, uid, operator).logs())


def query_state(plan: Plan, settings: RunSettings, uid: str, name: str, key: Any) -> Any:
    """What the function of a job's step would see in one of its states, for one key."""
    operator, place = find_place(recorded_places(plan), uid, name)
    node = next(n for n in plan.nodes.values() if n.uid == uid)
    assert isinstance(node, KeyedProcess)
    spec = next(spec for spec in node.states if spec.name == name)
    query = Query(node, spec, place, key)
    if peek(settings.checkpoint) is None:
        # The job has only just been started.
        return query.answer([])
    layout, record = recorded_job(settings.checkpoint)
    spark = open_spark(
        plan.job,
        master=settings.master,
        session=settings.session,
        log=layout.log,
        verbose=settings.verbose,
    )
    reader = StateReader(spark, layout, record, uid, operator)
    return query.answer(reader.logs(query.groups))


class StateReader:
    """Reads the chunk logs of one keyed step. `operator` is its stage as Spark counts: 0 is the last one."""

    def __init__(
        self, spark: EmbeddedSpark, layout: Layout, record: JobRecord, uid: str, operator: int
    ) -> None:
        self._uid = uid
        self._operator = operator
        self._layout = layout
        self._record = record
        self._shard_ids = shard_ids(record.shards)
        # Its own settings: nothing of the user's session or of the running query changes.
        self._session = spark.session.newSession()
        for key, value in query_settings(record.shards, forkless=spark.forkless).items():
            self._session.conf.set(key, value)
        self._session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _CHUNKS_A_BATCH)

    def logs(self, groups: range = range(KEY_GROUPS)) -> list[MemoryChunkStore]:
        """The chunk logs of a step behind the last durable epoch, of the shards that own these key groups.

        They hold no more chunks than the groups need. There is none before the first epoch.
        """
        try:
            return self._last(groups)
        except Exception:  # noqa: BLE001 - whatever it was, files may have gone under it
            try:
                return self._last(groups)
            except Exception as error:  # noqa: BLE001 - translated, whatever it is
                raise translate(error, None) from None

    def _last(self, groups: range) -> list[MemoryChunkStore]:
        epoch = durable_epoch(self._layout)
        if epoch < 0:
            return []
        manifests = self._manifests(epoch, groups)
        chunks = self._chunks(epoch, {s: m for s, m in manifests.items() if m}, groups)
        return [MemoryChunkStore(chunks[shard], content) for shard, content in manifests.items()]

    def _manifests(self, epoch: int, groups: range) -> dict[int, bytes | None]:
        """By shard; None where the step had nothing to keep yet."""
        shards = self._record.shards
        owners = [s for s in range(shards) if _overlap(groups_of(s, shards), groups)]
        rows = self._variable("manifest", epoch, owners).select("key.shard", _BODY).toArrow()
        found = {self._shard_ids.index(s): b for s, b in zip(*_columns(rows), strict=True)}
        stamps = self._stamps(epoch)
        for shard in owners:
            stamp = _stamp(found.get(shard))
            if stamp != stamps.get(str(shard), ""):
                raise CheckpointDamaged(
                    f"checkpoint {self._layout.root}: the state of step '{self._uid}' in shard {shard} is not that "
                    f"of epoch {epoch}, which the manifest of the epoch names; restore it from a copy"
                )
        return {shard: found.get(shard) for shard in owners}

    def _chunks(
        self, epoch: int, manifests: Mapping[int, bytes], groups: range
    ) -> dict[int, dict[int, bytes]]:
        """By shard and number."""
        sizes: Counter[int] = Counter()
        for content in manifests.values():
            sizes.update(_needed(content, groups))
        found: dict[int, dict[int, bytes]] = defaultdict(dict)
        for numbers in _portions(sizes):
            frame = self._variable("chunks", epoch, manifests)
            frame = frame.where(frame.user_map_key.id.isin(numbers))
            rows = frame.select("key.shard", "user_map_key.id", _BODY).toArrow()
            for shard_id, number, body in zip(*_columns(rows), strict=True):
                found[self._shard_ids.index(shard_id)][number] = body
        return found

    def _variable(self, name: str, epoch: int, shards: Iterable[int]) -> DataFrame:
        """The entries of one of the state variables of `HostProcessor` that a step has in these shards."""
        frame = (
            self._session.read.format("statestore")
            .option("batchId", epoch)
            .option("operatorId", self._operator)
            .option("stateVarName", name)
            .option("flattenCollectionTypes", "true")
            .load(str(self._layout.spark))
        )
        ids = [self._shard_ids[shard] for shard in shards]
        return frame.where(frame.user_map_key.operator == self._uid).where(
            frame.key.shard.isin(ids)
        )

    def _stamps(self, epoch: int) -> Mapping[str, str]:
        manifest = read_manifest(self._layout, epoch)
        if manifest is None:
            raise CheckpointDamaged(
                f"checkpoint {self._layout.root}: epoch {epoch} has no manifest"
            )
        return manifest.stamps.get(self._uid, {})


def _columns(rows: pa.Table) -> Iterator[list[Any]]:
    return (column.to_pylist() for column in rows.columns)


def _stamp(content: bytes | None) -> str:
    return "" if content is None else Manifest.from_bytes(content, "a step").stamp


def _needed(content: bytes, groups: range) -> dict[int, int]:
    """The chunks that may hold rows of these key groups, and their sizes."""
    entries = Manifest.from_bytes(content, "a step").entries
    near = (e for e in entries if _overlap(range(e.groups[0], e.groups[1] + 1), groups))
    return {entry.chunk: entry.size for entry in near}


def _portions(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Numbers of chunks that may be read at once."""
    portion: list[int] = []
    room = _PORTION_BYTES
    for number, size in sorted(sizes.items()):
        if portion and size > room:
            yield portion
            portion, room = [], _PORTION_BYTES
        portion.append(number)
        room -= size
    if portion:
        yield portion


def _overlap(a: range, b: range) -> bool:
    return a.start < b.stop and b.start < a.stop
