"""The rows of a batch on which a step's code failed: an error of the job, or dead letters.

Every row is called once. What it raises, and a result that does not fit the declared columns, is a failure of that row
alone, and everything that the row has made is undone. As long as nothing fails this costs nothing a row: calls run in
one sweep that is taken up again behind the row that failed, and results are looked at one by one only when they do not
fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace._graph.nodes import ERRORS, CodeStep
from headrace._runtime.columns import row_objects
from headrace._runtime.dead_letters import dead_letters
from headrace._runtime.operator import Outputs
from headrace._runtime.results import Wrong
from headrace._runtime.rows import Rows
from headrace._runtime.usercode import OURS, calling, cause_of, failed, place
from headrace._runtime.watchdog import watching
from headrace.errors import HeadraceError, UserCodeError

__all__ = ["Failures", "Fitted", "Made", "call_each"]

Integers = npt.NDArray[np.int64]


@dataclass
class Made:
    """Results for one output, and for each the place of the row that it came from; None: of each row in turn."""

    results: Sequence[Any]
    parents: Sequence[int] | Integers | None
    build: Callable[[Sequence[Any], Wrong], pa.RecordBatch]

    def without(self, failed: Mapping[int, Any]) -> Made:
        """What other rows have made."""
        parents = range(len(self.results)) if self.parents is None else self.parents
        kept = [(r, p) for r, p in zip(self.results, parents, strict=True) if p not in failed]
        return Made([result for result, _ in kept], [parent for _, parent in kept], self.build)


@dataclass(frozen=True)
class Fitted:
    """Results as columns."""

    batch: pa.RecordBatch
    parents: Integers | None


class Failures:
    """Those of one batch. With `on_error="fail"` the first one is raised."""

    def __init__(self, node: CodeStep, rows: Rows) -> None:
        self._uid = node.uid
        self._rows = rows
        self.dead_letter = node.on_error == "dead_letter"
        #: By place of the row: cause and traceback.
        self._causes: dict[int, tuple[str, str | None]] = {}

    def add(self, index: int | None, error: BaseException) -> None:
        """The code failed on this row; None if it had all of them."""
        if isinstance(error, OURS):
            raise error
        if self.dead_letter and index is not None:
            self.bury(index, error)
        elif isinstance(error, HeadraceError):
            raise error
        else:
            raise failed(self._uid, error, place(self._rows, index)) from None

    def bury(self, index: int, error: BaseException) -> None:
        """The row becomes a dead letter, whatever happens to others that fail."""
        self._causes.setdefault(index, cause_of(error))

    def misfit(self, index: int, sentence: str) -> UserCodeError:
        """What is raised of a result of this row that does not fit."""
        where = place(self._rows, index)
        at = f"\n  at {where}" if where else ""
        return UserCodeError(f"The result of step '{self._uid}' does not fit: {sentence}.{at}")

    def fit(self, made: Mapping[str, Made]) -> dict[str, Fitted]:
        """The results of each output as columns, without those of rows that failed, here or before."""
        kept = made
        if self._causes:
            kept = {output: each.without(self._causes) for output, each in made.items()}
        known = len(self._causes)
        built = {output: self._build(each) for output, each in kept.items()}
        if len(self._causes) > known:
            return self.fit(kept)
        return {
            output: Fitted(
                built[output], None if each.parents is None else np.array(each.parents, np.int64)
            )
            for output, each in kept.items()
        }

    def spared(self) -> npt.NDArray[np.bool_]:
        """The rows that did not fail, as a mask."""
        mask = np.ones(len(self._rows), np.bool_)
        mask[list(self._causes)] = False
        return mask

    def outputs(self) -> Outputs:
        """The rows that failed, as dead letters."""
        if self._causes:
            places = np.array(sorted(self._causes), np.int64)
            found = [self._causes[place] for place in places.tolist()]
            causes, tracebacks = [cause for cause, _ in found], [trace for _, trace in found]
            yield ERRORS, dead_letters(self._rows.take(places), self._uid, causes, tracebacks)

    def _build(self, made: Made) -> pa.RecordBatch | None:
        """The columns; None if some of the results turn out not to fit."""

        def wrong(place: int, sentence: str) -> UserCodeError:
            return self.misfit(
                place if made.parents is None else int(made.parents[place]), sentence
            )

        try:
            with calling(self._uid, self._rows):
                return made.build(made.results, wrong)
        except UserCodeError:
            if not self.dead_letter:
                raise
            known = len(self._causes)
            for parent, error in _misfits(made):
                self.add(parent, error)
            if len(self._causes) == known:
                raise
        return None


def call_each(
    node: CodeStep,
    function: Callable[[Any], Any],
    rows: Rows,
    failures: Failures,
    *,
    keep: Callable[[Any], Any] | None = None,
) -> list[Any]:
    """What the function returns for each row, and `keep` makes of that; anything where it failed."""
    objects = row_objects(rows.batch)
    left = iter(objects)
    results: list[Any] = []
    while len(results) < len(objects):
        try:
            # The list grows call by call, so its length is the number of the call, and of the row that failed.
            with watching(node.limit_us, results.__len__):
                made = map(function, left)
                results.extend(made if keep is None else map(keep, made))
            if len(results) == len(objects):
                break
            # An iterator that raises this says that it is at its end.
            error: BaseException = StopIteration()
        except BaseException as raised:  # noqa: BLE001 - user code may raise anything, SystemExit too
            error = raised
        failures.add(len(results), error)
        results.append(None)
    return results


def _misfits(made: Made) -> Iterator[tuple[int, Exception]]:
    """The rows whose results do not fit, found by looking at ever smaller parts."""
    parents = range(len(made.results)) if made.parents is None else made.parents
    waiting = [(0, len(made.results))]
    while waiting:
        start, end = waiting.pop()
        try:
            made.build(made.results[start:end], _told)
        except Exception as error:  # noqa: BLE001 - a property of a user's class may raise anything
            if end - start == 1:
                yield int(parents[start]), error
            else:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]


def _told(_: int, sentence: str) -> UserCodeError:
    return UserCodeError(f"The result does not fit: {sentence}")
