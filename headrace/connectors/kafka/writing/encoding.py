"""Rows to staged records: value, key, hash of the key and what else a record carries, once and for good.

Encoding happens in the workers when rows are staged; a publisher only sends bytes. In upsert mode the column `change`
becomes the kind of record: a deletion is a tombstone, and so is a withdrawal ("-U"), unless its key gets another row in
the same batch: then it is not written at all. What withdraws a row need not bring another one for the key: a filter may
have taken that one out, or the update has changed the key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace._graph.changes import CHANGE
from headrace.connectors.kafka.writing.keys import KeyEncoder, key_encoder
from headrace.connectors.kafka.writing.partitioner import hashes
from headrace.errors import InputError, SinkRefused
from headrace.formats.messages import MessageFormat

__all__ = ["Layout", "RecordEncoder"]

_LARGEST = 0x7FFFFFFF
#: What Kafka takes for the name of a topic.
_TOPIC = r"^[a-zA-Z0-9._-]{1,249}$"


@dataclass(frozen=True)
class Layout:
    """Which columns become what."""

    topic: str | None
    topic_column: str | None
    format: MessageFormat
    key: tuple[str, ...]
    key_format: str | MessageFormat | None
    partition_by: str | None
    headers: str | None
    timestamp: str | None
    upsert: bool

    def value_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the value: all but those that only say where the record goes."""
        left_out = {self.topic_column, self.headers} | ({CHANGE} if self.upsert else set())
        return pa.schema([field for field in schema if field.name not in left_out])

    def staged_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of the spool."""
        fields = [("value", pa.binary()), ("key", pa.binary()), ("hash", pa.int32())]
        if self.partition_by is not None:
            fields.append(("partition", pa.int32()))
        if self.timestamp is not None:
            fields.append(("timestamp", pa.int64()))
        if self.headers is not None:
            fields.append(("headers", schema.field(self.headers).type))
        if self.topic_column is not None:
            fields.append(("topic", pa.string()))
        return pa.schema(fields)


class RecordEncoder:
    """Made once a process for a sink and a schema."""

    def __init__(self, layout: Layout, schema: pa.Schema) -> None:
        self._layout = layout
        self._values = layout.value_schema(schema)
        self.schema = layout.staged_schema(schema)
        self._has_changes = CHANGE in schema.names and (layout.upsert or layout.format.changes)
        self._keys: dict[str | None, KeyEncoder] = {}
        self._encoders: dict[str | None, Callable[[pa.RecordBatch], pa.Array]] = {}

    def __call__(self, batch: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """The records of rows; `number` is the first row's, for those that have no key to go by."""
        if batch.num_rows == 0:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        keys = self._by_topic(batch, self._encoded_keys)
        if self._layout.upsert and keys.null_count:
            raise _no_key(batch, keys, self._layout.key)
        if self._has_changes:
            _refuse_unknown(batch.column(CHANGE))
            kept = pa.array(~_replaced(batch.column(CHANGE), self._places(batch, keys)))
            batch, keys = batch.filter(kept), keys.filter(kept)
        columns = [self._by_topic(batch, self._encoded_values), keys, _hashes(keys, number)]
        return pa.record_batch([*columns, *self._rest(batch)], schema=self.schema)

    def _encoded_values(self, topic: str | None, batch: pa.RecordBatch) -> pa.Array:
        encode = self._encoders.get(topic)
        if encode is None:
            encode = _for_topic(self._layout.format, topic).encoder(self._values)
            self._encoders[topic] = encode
        values = encode(batch.select(self._values.names))
        if not (self._has_changes and self._layout.upsert):
            return values
        deleted = pc.is_in(batch.column(CHANGE), pa.array(["-U", "-D"]))
        return pc.if_else(deleted, pa.scalar(None, pa.binary()), values)

    def _encoded_keys(self, topic: str | None, batch: pa.RecordBatch) -> pa.Array:
        encode = self._keys.get(topic)
        if encode is None:
            encode = key_encoder(self._layout.key, self._layout.key_format, topic)
            self._keys[topic] = encode
        return encode(batch)

    def _places(self, batch: pa.RecordBatch, keys: pa.Array) -> pa.Array:
        """What a row replaces another one by: its key, in its topic."""
        if self._layout.topic_column is None:
            return keys
        topics = _topics(batch, self._layout.topic_column).cast(pa.binary())
        return pc.binary_join_element_wise(topics, keys, b"\0")

    def _by_topic(
        self, batch: pa.RecordBatch, encode: Callable[[str | None, pa.RecordBatch], pa.Array]
    ) -> pa.Array:
        """A column made topic by topic where rows name theirs: a registry has schemas by topic."""
        if self._layout.topic_column is None:
            return encode(self._layout.topic, batch)
        topics = _topics(batch, self._layout.topic_column)
        found = topics.dictionary_encode()
        places, parts = [], []
        for at, topic in enumerate(found.dictionary.to_pylist()):
            rows = np.flatnonzero(found.indices.to_numpy() == at)
            places.append(rows)
            parts.append(encode(topic, batch.take(rows)))
        back = np.argsort(np.concatenate(places), kind="stable")
        return pa.concat_arrays(parts).take(back)

    def _rest(self, batch: pa.RecordBatch) -> list[pa.Array]:
        layout, columns = self._layout, []
        if layout.partition_by is not None:
            columns.append(_partitions(batch.column(layout.partition_by), layout.partition_by))
        if layout.timestamp is not None:
            instants = batch.column(layout.timestamp).cast(pa.timestamp("us"), safe=False)
            stamps = pc.divide(instants.cast(pa.int64()), 1000)
            # The library takes 0 for "now", 57 years away from the first millisecond of 1970.
            columns.append(pc.if_else(pc.equal(stamps, 0), 1, stamps))
        if layout.headers is not None:
            columns.append(_headers(batch.column(layout.headers), layout.headers))
        if layout.topic_column is not None:
            columns.append(_topics(batch, layout.topic_column))
        return columns


def _for_topic(format: MessageFormat, topic: str | None) -> MessageFormat:
    for_topic = getattr(format, "for_topic", None)
    made: MessageFormat = format if for_topic is None or topic is None else for_topic(topic)
    return made


def _hashes(keys: pa.Array, number: int) -> pa.Array:
    """Kafka's hash of each key; rows without one go round by their number."""
    found = hashes(keys)
    if keys.null_count:
        turns = (number + np.arange(len(keys), dtype=np.int64)) & _LARGEST
        missing = keys.is_null().to_numpy(zero_copy_only=False)
        found = np.where(missing, turns.astype(np.int32), found)
    return pa.array(found, pa.int32())


def _topics(batch: pa.RecordBatch, column: str) -> pa.Array:
    topics = batch.column(column).cast(pa.string())
    if topics.null_count:
        row = batch.slice(pc.index(topics.is_null(), True).as_py(), 1).to_pylist()[0]
        raise InputError(f"a row names no topic in column {column!r}: {str(row)[:300]}")
    named = topics.unique()
    wrong = pc.or_(pc.invert(pc.match_substring_regex(named, _TOPIC)), _are_dots(named))
    if pc.any(wrong).as_py():
        raise InputError(
            f"a row names the topic {named.filter(wrong)[0].as_py()[:300]!r} in column {column!r}, which no topic can be"
            " called: Kafka takes up to 249 letters without accents, digits, '.', '_' and '-'"
        )
    return topics


def _are_dots(names: pa.Array) -> pa.Array:
    return pc.is_in(names, pa.array([".", ".."]))


def _headers(column: pa.Array, name: str) -> pa.Array:
    """The headers of rows. Those of a map have names in any case."""
    if pa.types.is_list(column.type):
        found = column.flatten()
        if found.null_count or found.field("key").null_count:
            raise InputError(f"a row has a header without a name in column {name!r}")
    return column


def _partitions(column: pa.Array, name: str) -> pa.Array:
    bounds = pc.min_max(column).as_py()
    for number in (bounds["min"], bounds["max"]):
        if number is not None and not 0 <= number <= _LARGEST:
            raise InputError(
                f"column {name!r} names partition {number}; partitions are numbered from 0"
            )
    return column.cast(pa.int32())


def _no_key(batch: pa.RecordBatch, keys: pa.Array, names: tuple[str, ...]) -> InputError:
    row = batch.slice(pc.index(keys.is_null(), True).as_py(), 1).to_pylist()[0]
    return InputError(
        f"upsert needs a key in every row, and {names[0]!r} is null in {str(row)[:300]}: filter such rows"
        " out before the sink"
    )


def _replaced(change: pa.Array, places: pa.Array) -> npt.NDArray[np.bool_]:
    """Which rows are withdrawals whose place gets another row behind them."""
    withdrawn = np.asarray(pc.equal(change, "-U").to_numpy(zero_copy_only=False), bool)
    if not withdrawn.any():
        return withdrawn
    found = places.dictionary_encode().indices
    known = np.asarray(found.is_valid().to_numpy(zero_copy_only=False), bool)
    codes = pc.fill_null(found, 0).to_numpy()
    rows, last = np.arange(len(codes)), np.zeros(len(codes), np.int64)
    last[codes[known]] = rows[known]  # of several rows of a place the last one stays
    replaced: npt.NDArray[np.bool_] = withdrawn & known & (last[codes] > rows)
    return replaced


def _refuse_unknown(change: pa.Array) -> None:
    known = pc.is_in(change, pa.array(["+I", "-U", "+U", "-D"]))
    if not pc.all(known, min_count=0).as_py():
        strange = change.filter(pc.invert(known))[0].as_py()
        raise SinkRefused(
            f"the column {CHANGE!r} holds {strange!r}; it says what a row is: '+I', '-U', '+U' or '-D'"
        )
