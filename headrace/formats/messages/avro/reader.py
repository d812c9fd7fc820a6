"""Messages of one writer's schema to rows: all at once where that can be, one at a time where it cannot."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.formats.lines import halved
from headrace.formats.messages.avro import vectors
from headrace.formats.messages.avro.resolution import Plan, resolved
from headrace.formats.messages.avro.rows import column, row_reader
from headrace.formats.messages.avro.schema import AvroType, described, parsed
from headrace.formats.messages.format import BadMessage, Mismatch
from headrace.formats.messages.packed import Packed

__all__ = ["AvroReader", "Rows"]

#: Rows as one struct column, their places in the batch, and the messages that are none.
Rows = tuple[pa.StructArray, npt.NDArray[np.int64], list[BadMessage]]


class AvroReader:
    """Reads what was written with one schema. `Mismatch` if that cannot become these columns."""

    def __init__(
        self,
        writer: str,
        columns: pa.StructType,
        *,
        named: Sequence[str] = (),
        reader: AvroType | None = None,
    ) -> None:
        tree = parsed(writer, named)
        self._plan = resolved(tree, columns, reader)
        _check_name(tree, reader, self._plan)
        self._by_vectors = vectors.can_read(tree)
        self._writer = writer
        self._named = named
        self._one_by_one: Callable[[bytes], Any] | None = None

    def read(self, messages: Packed) -> Rows:
        """The rows of the messages in order."""
        if not self._by_vectors:
            return self._slowly(messages)
        try:
            rows, bad = vectors.read(messages, self._plan)
            if not bad.any():
                return rows, messages.places, []
        except pa.ArrowInvalid:
            # fastavro takes a few messages that Avro does not allow. What a message is must not depend on its batch.
            bad = vectors.malformed(messages, self._plan.writer)
            if not bad.any():
                return self._slowly(messages)
        rows, places, others = self.read(messages.only(~bad))
        return rows, places, [*others, *self._causes(messages.only(bad))]

    def _causes(self, messages: Packed) -> list[BadMessage]:
        """Why these are bad; fastavro takes a few that Avro does not allow, and they stay bad."""
        told = {bad.place: bad for bad in self._slowly(messages)[2]}
        return [
            told.get(place, BadMessage(place, "not a record of this schema"))
            for place in messages.places.tolist()
        ]

    def _slowly(self, messages: Packed) -> Rows:
        values: list[Any] = []
        places: list[int] = []
        bad: list[BadMessage] = []
        for place, message in zip(messages.places.tolist(), messages.messages(), strict=True):
            try:
                values.append(self._row(message))
                places.append(place)
            except ValueError as error:
                bad.append(BadMessage(place, str(error)))
        try:
            return column(values, self._plan), np.array(places, dtype=np.int64), bad
        except pa.ArrowInvalid:
            return self._without_bad(values, places, bad)

    def _without_bad(self, values: list[Any], places: list[int], bad: list[BadMessage]) -> Rows:
        """Some value has no place in its column's type: the rows that have are kept."""
        good, failed = halved(len(values), lambda a, b: column(values[a:b], self._plan))
        bad += [BadMessage(places[place], str(error)) for place, error in failed]
        kept = np.delete(np.array(places, dtype=np.int64), [place for place, _ in failed])
        return pa.concat_arrays([column([], self._plan), *good]), kept, bad

    def _row(self, message: bytes) -> Any:
        if self._one_by_one is None:
            schemas = [json.loads(other) for other in self._named]
            self._one_by_one = row_reader(json.loads(self._writer), schemas)
        return self._one_by_one(message)


def _check_name(writer: AvroType, reader: AvroType | None, plan: Plan) -> None:
    """A topic may hold other records, too; without a name and a field in common it is no version of ours."""
    names = [kind.name.rpartition(".")[2] for kind in (writer, reader) if kind is not None]
    if len(set(names)) > 1 and all(child.source is None for child in plan.children):
        raise Mismatch("the record", described(writer), names[1])
