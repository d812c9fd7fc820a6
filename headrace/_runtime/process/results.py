"""Calls of a process function, row by row, and what becomes of what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any

import numpy as np

from headrace._graph.nodes import MAIN, KeyedProcess
from headrace._runtime.detached import detached
from headrace._runtime.process.cursor import Cursor
from headrace._runtime.process.states.shapes import detacher_or_none
from headrace._runtime.results import build_batch, fields_of
from headrace._runtime.rows import Rows
from headrace.errors import UserCodeError
from headrace.outputs import OutputTag
from headrace.schema import Row

__all__ = ["Results", "refuse_single", "undeclared"]

Output = tuple[str, Rows]
Made = Iterable[Any] | None


class Results:
    """What a function gave to each output since the last `take`, with its timestamps."""

    def __init__(self, node: KeyedProcess, at: Cursor) -> None:
        self._node = node
        self._at = at
        self._sides = dict(node.side_outputs)
        self._made: dict[str, tuple[list[Any], list[int | None]]] = {}
        self._checks: dict[str, Callable[[Any], None]] = {}
        self.rows, self.stamps = self._begin(MAIN)

    def take_in(self, made: Any) -> None:
        """What one call returned or yields."""
        if type(made) is not GeneratorType:
            refuse_single(made)
        stamp = self._at.stamp
        for row in made:
            if type(row) is tuple:
                self._tagged(row)
            else:
                self.rows.append(detached(row))
                self.stamps.append(stamp)

    def output(self, tag: Any, row: Any) -> None:
        """A row for a side output."""
        if not isinstance(tag, OutputTag) or tag.name not in self._sides:
            raise undeclared(tag, self._node.uid, self._sides)
        rows, stamps = self._made.get(tag.name) or self._begin(tag.name)
        rows.append(detached(row))
        stamps.append(self._at.stamp)

    def mark(self) -> dict[str, int]:
        """How much there is."""
        return {name: len(rows) for name, (rows, _) in self._made.items()}

    def undo(self, mark: dict[str, int]) -> None:
        """Back to there."""
        for name, (rows, stamps) in self._made.items():
            del rows[mark.get(name, 0) :], stamps[mark.get(name, 0) :]

    def check(self, mark: dict[str, int]) -> None:
        """Refuse what was made since then and does not fit its output."""
        for name, (rows, _) in self._made.items():
            for row in rows[mark.get(name, 0) :]:
                self._fitting(name)(row)

    def date(self, mark: dict[str, int]) -> None:
        """What was made since then of rows without a timestamp has the time of the clock."""
        for name, (_, stamps) in self._made.items():
            first = mark.get(name, 0)
            stamps[first:] = [self._at.clock if at is None else at for at in stamps[first:]]

    def take(self) -> list[Output]:
        """All of it, as batches."""
        made, self._made = self._made, {}
        self.rows, self.stamps = self._begin(MAIN)
        outputs = []
        for name, (rows, stamps) in made.items():
            if rows:
                batch = build_batch(rows, self._node.output_schema(name), self._wrong)
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
                for part, value in zip(parts, fields_of(row, schema, 0, self._wrong), strict=True):
                    part(value)

            self._checks[name] = check
        return self._checks[name]

    def _begin(self, name: str) -> tuple[list[Any], list[int | None]]:
        self._made[name] = ([], [])
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
