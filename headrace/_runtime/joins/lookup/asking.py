"""Asking a user's code for the distinct keys of a batch: a `LookupFunction`, or a plain function of a list of keys.

What is done in Python is done once a key; rows become columns here, and the operator gathers. A call that fails, or a row
that does not fit the declared columns, fails the job; or, where rows may become dead letters, it is the failure of its
key alone, as far as that can be told: see `headrace.lookups.asking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace._graph.join_nodes import LookupJoin
from headrace._runtime.asynchronous.loop import run
from headrace._runtime.columns import values
from headrace._runtime.joins.lookup.found import Found
from headrace._runtime.results import Wrong, build_batch
from headrace._runtime.rows import Rows
from headrace._runtime.usercode import OURS, TookTooLong, cause_of, failed, place
from headrace._runtime.watchdog import IDLE, watching
from headrace.errors import HeadraceError, UserCodeError
from headrace.lookups import LookupFunction
from headrace.lookups.asking import Answers, ask, is_of_a_key

__all__ = ["found_for"]

#: Keys to a call of a plain function.
_KEYS = 1000


def found_for(
    node: LookupJoin, keys: Sequence[pa.Array], rows: Rows, firsts: Sequence[int]
) -> Found:
    """What the table has for these keys. `firsts` are the first rows that have each, to show in errors."""
    return _Asked(node, _objects(keys), rows, firsts).found()


class _Asked:
    """The keys of one batch."""

    def __init__(
        self, node: LookupJoin, keys: list[Any], rows: Rows, firsts: Sequence[int]
    ) -> None:
        self._node = node
        self._keys = keys
        self._rows = rows
        self._firsts = firsts
        self._apart = node.on_error == "dead_letter"

    def found(self) -> Found:
        answers = self._answers()
        numbers, rows, failures = [], [], {}
        for number, key in enumerate(self._keys):
            row = answers.rows.get(key)
            if row is not None:
                numbers.append(number)
                rows.append(row)
            elif key in answers.failures:
                failures[number] = cause_of(answers.failures[key])
        batch = self._built(rows, numbers, failures)
        starts, counts = np.zeros((2, len(self._keys)), np.int64)
        kept = [number for number in numbers if number not in failures] if failures else numbers
        starts[kept], counts[kept] = np.arange(len(kept)), 1
        return Found(batch, starts, counts, failures)

    def _answers(self) -> Answers:
        table, limit_us = self._node.table, self._node.limit_us
        try:
            if isinstance(table, LookupFunction):
                limit_s = None if limit_us is None else limit_us / 1e6
                answers = run(ask(table, self._keys, apart=self._apart, limit_s=limit_s))
            else:
                answers = self._called(table)
        except (HeadraceError, *OURS):
            raise
        except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
            answers = Answers({}, dict.fromkeys(self._keys, error))
        if answers.failures and not self._apart:
            self._fail(answers.failures)
        return answers

    def _called(self, function: Any) -> Answers:
        """The same of a plain function, call by call."""
        found, waiting = Answers(), _parts(self._keys, _KEYS)
        with watching(self._node.limit_us) as watch:
            for number, part in enumerate(waiting):  # grows
                watch.call = number
                try:
                    found.rows.update(_mapping(function, function(list(part))))
                except OURS:
                    raise
                except BaseException as error:  # noqa: BLE001 - user code may raise anything
                    watch.call = IDLE
                    if self._apart and len(part) > 1 and _may_be_of_a_key(error):
                        waiting += _parts(part, (len(part) + 1) // 2)
                        continue
                    found.failures |= dict.fromkeys(part, error)
                    if not self._apart:
                        break
        return found

    def _fail(self, failures: Mapping[Any, BaseException]) -> None:
        """Raise the first failure, with the keys of its call."""
        key, error = next(iter(failures.items()))
        same = sum(other is error for other in failures.values())
        number = self._keys.index(key)
        where = place(self._rows, self._firsts[number], key=lambda: key)
        if same > 1:
            where += f"\n  and {same - 1:,} other keys of the same call"
        if isinstance(error, HeadraceError):
            # It says who must act, and whether to try again.
            raise type(error)(f"Step '{self._node.uid}': {error}\n  at {where}") from error
        raise failed(self._node.uid, error, where) from None

    def _built(
        self, rows: list[Any], numbers: list[int], failures: dict[int, tuple[str, str | None]]
    ) -> pa.RecordBatch:
        """The rows as columns. Those that do not fit are failures of their keys, or raised."""
        schema = self._node.table_schema
        try:
            return build_batch(rows, schema, self._wrong(numbers))
        except UserCodeError:
            if not self._apart:
                raise
        kept = []
        for row, number in zip(rows, numbers, strict=True):
            try:
                build_batch([row], schema, self._wrong([number]))
            except Exception as error:  # noqa: BLE001 - a property of a user's class may raise anything
                failures[number] = cause_of(error)
            else:
                kept.append(row)
        return build_batch(kept, schema, self._wrong([]))

    def _wrong(self, numbers: Sequence[int]) -> Wrong:
        def wrong(index: int, sentence: str) -> UserCodeError:
            number = numbers[index]
            where = place(self._rows, self._firsts[number], key=lambda: self._keys[number])
            uid = self._node.uid
            return UserCodeError(
                f"The row that step '{uid}' looked up does not fit: {sentence}.\n  at {where}"
            )

        return wrong


def _objects(keys: Sequence[pa.Array]) -> list[Any]:
    """Keys as Python has them: a value, or a tuple of several. Every NaN is the same object, so that it is found again."""
    lists = [_listed(column) for column in keys]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def _listed(column: pa.Array) -> list[Any]:
    found = values(column)
    if pt.is_floating(column.type):
        return [math.nan if value != value else value for value in found]  # noqa: PLR0124
    return found


def _may_be_of_a_key(error: BaseException) -> bool:
    return is_of_a_key(error) and not isinstance(error, TookTooLong)


def _parts(keys: Sequence[Hashable], size: int) -> list[Sequence[Hashable]]:
    return [keys[first : first + size] for first in range(0, len(keys), size)]


def _mapping(function: Callable[..., Any], found: Any) -> Mapping[Any, Any]:
    if isinstance(found, Mapping):
        return found
    name = getattr(function, "__name__", type(function).__name__)
    raise UserCodeError(f"{name} must return a mapping of keys to rows, not {found!r:.80}")
