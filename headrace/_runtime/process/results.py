"""What a process function yields, row by row, until it becomes batches.

Of a result only its fields are kept, in the order of the columns: the function may change the object and yield it
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from operator import attrgetter, itemgetter
from types import GeneratorType
from typing import Any

import numpy as np
import pyarrow as pa

from headrace._graph.nodes import MAIN, KeyedProcess
from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.states.shapes import detacher_or_none, is_nested
from headrace._runtime.results import Wrong, build_column, fields_of
from headrace._runtime.rows import Rows
from headrace._runtime.usercode import place as place_of
from headrace.errors import UserCodeError
from headrace.outputs import OutputTag
from headrace.schema import Row

__all__ = ["Results", "refuse_single", "undeclared"]

Output = tuple[str, Rows]
Columns = tuple[list[Any], list[int | None], list[Any]]


class Results:
    """What a function gave to each output since the last `take`, with its timestamps."""

    def __init__(self, node: KeyedProcess, at: Cursor, key_of: Callable[[Any], Any]) -> None:
        self._node = node
        self._at = at
        self._sides = dict(node.side_outputs)
        self._key_of = key_of
        #: By output, the fields of each row, its timestamp and the code of its key.
        self._made: dict[str, Columns] = {}
        self._fields: dict[str, Fields] = {}
        self._checks: dict[str, Callable[[Any], None]] = {}
        self.rows, self.stamps, self.codes = self._begin(MAIN)
        self._of_main = self._fields_of(MAIN)

    def take_in(self, made: Any) -> None:
        """What one call returned or yields."""
        if type(made) is not GeneratorType:
            refuse_single(made)
        code, stamp, fields = self._at.code, self._at.stamp, self._of_main
        for row in made:
            kind = type(row)
            if kind is tuple:
                self._tagged(row)
            else:
                self.rows.append(fields[kind](row))
                self.stamps.append(stamp)
                self.codes.append(code)

    def output(self, tag: Any, row: Any) -> None:
        """A row for a side output."""
        if not isinstance(tag, OutputTag) or tag.name not in self._sides:
            raise undeclared(tag, self._node.uid, self._sides)
        rows, stamps, codes = self._made.get(tag.name) or self._begin(tag.name)
        rows.append(self._fields_of(tag.name)[type(row)](row))
        stamps.append(self._at.stamp)
        codes.append(self._at.code)

    def mark(self) -> dict[str, int]:
        """How much there is."""
        return {name: len(rows) for name, (rows, _, _) in self._made.items()}

    def undo(self, mark: dict[str, int]) -> None:
        """Back to there."""
        for name, columns in self._made.items():
            for column in columns:
                del column[mark.get(name, 0) :]

    def check(self, mark: dict[str, int]) -> None:
        """Refuse what was made since then and does not fit its output."""
        for name, (rows, _, _) in self._made.items():
            for row in rows[mark.get(name, 0) :]:
                self._fitting(name)(row)

    def date(self, mark: dict[str, int]) -> None:
        """What was made since then of rows without a timestamp has the time of the clock."""
        for name, (_, stamps, _) in self._made.items():
            first = mark.get(name, 0)
            stamps[first:] = [self._at.clock if at is None else at for at in stamps[first:]]

    def take(self) -> list[Output]:
        """All of it, as batches."""
        made, self._made = self._made, {}
        self.rows, self.stamps, self.codes = self._begin(MAIN)
        outputs = []
        for name, (rows, stamps, codes) in made.items():
            if rows:
                batch = self._batch(rows, codes, self._node.output_schema(name))
                timeless = None in stamps
                outputs.append(
                    (name, Rows(batch, None if timeless else np.array(stamps, np.int64)))
                )
        return outputs

    def _fitting(self, name: str) -> Callable[[Any], None]:
        """Looks at one row of an output."""
        if name not in self._checks:
            schema = self._node.output_schema(name)
            parts = [detacher_or_none(field, self._wrong) for field in schema]

            def check(row: Any) -> None:
                for part, value in zip(parts, row, strict=True):
                    part(value)

            self._checks[name] = check
        return self._checks[name]

    def _batch(self, rows: list[Any], codes: list[Any], schema: pa.Schema) -> pa.RecordBatch:
        def wrong(place: int, what: str) -> UserCodeError:
            made = dict(zip(schema.names, rows[place], strict=True))
            where = place_of(None, key=lambda: self._key_of(codes[place]), row=lambda: made)
            return UserCodeError(f"{self._wrong(place, what)}\n  at {where}")

        columns = zip(zip(*rows, strict=True), schema, strict=True)
        arrays = [build_column(column, field, wrong) for column, field in columns]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _fields_of(self, name: str) -> Fields:
        if name not in self._fields:
            self._fields[name] = Fields(self._node.output_schema(name), self._wrong)
        return self._fields[name]

    def _begin(self, name: str) -> Columns:
        self._made[name] = ([], [], [])
        return self._made[name]

    def _tagged(self, pair: tuple[Any, ...]) -> None:
        if len(pair) != 2 or not isinstance(pair[0], OutputTag):
            raise TypeError(
                f"a row is a dataclass instance, a dict or a row, and what goes to a side output a pair"
                f" `tag, row`; {pair!r} is neither"
            )
        self.output(*pair)

    def _wrong(self, _: int, what: str) -> UserCodeError:
        return UserCodeError(f"The result of step '{self._node.uid}' does not fit: {what}.")


class Fields(dict[type, Callable[[Any], Sequence[Any]]]):
    """By class of a result, what takes its fields out in the order of the columns."""

    def __init__(self, schema: pa.Schema, wrong: Wrong) -> None:
        super().__init__()
        self._schema = schema
        self._wrong = wrong

    def __missing__(self, kind: type) -> Callable[[Any], Sequence[Any]]:
        found = self._quick(kind) or self._slow
        self[kind] = found = (
            self._copied(found) if any(map(is_nested, self._schema.types)) else found
        )
        return found

    def _copied(self, get: Callable[[Any], Sequence[Any]]) -> Callable[[Any], Sequence[Any]]:
        """What lies in fields, such as a list, can be changed after it was given, too."""
        parts = [detacher_or_none(field, self._wrong) for field in self._schema]
        return lambda result: [part(v) for part, v in zip(parts, get(result), strict=True)]

    def _slow(self, result: Any) -> Sequence[Any]:
        return fields_of(result, self._schema, 0, self._wrong)

    def _quick(self, kind: type) -> Callable[[Any], Sequence[Any]] | None:
        """For the usual classes, one call into C; what it fails on is looked at again to say why."""
        names, slow = self._schema.names, self._slow
        if len(names) < 2 or not (kind is dict or is_dataclass(kind)):
            return None
        get_item, get_attribute = itemgetter(*names), attrgetter(*names)

        def of_dict(result: Any) -> Sequence[Any]:
            try:
                return get_item(result) if len(result) == len(names) else slow(result)
            except KeyError:
                return slow(result)

        def of_record(result: Any) -> Sequence[Any]:
            try:
                return get_attribute(result)
            except AttributeError:
                return slow(result)

        return of_dict if kind is dict else of_record


def refuse_single(made: Any) -> None:
    """A function that returns one row where several are expected would have its fields taken for rows."""
    tagged = isinstance(made, tuple) and made and isinstance(made[0], OutputTag)
    if isinstance(made, str | bytes | dict | Row) or tagged or not isinstance(made, Iterable):
        raise TypeError(
            f"a process function must yield rows or return an iterable of rows, not {made!r}; write"
            " `yield row`, or return a list"
        )


def undeclared(tag: Any, uid: str, known: Iterable[str]) -> UserCodeError:
    """What to say to a tag that the step does not have."""
    names = ", ".join(f"'{name}'" for name in known) or "none"
    return UserCodeError(
        f"The code of step '{uid}' gave a row to the side output {tag!r}, which is not declared; declared are:"
        f" {names}. Make the tag an attribute of the class, or say process(..., side_outputs=[tag])."
    )
