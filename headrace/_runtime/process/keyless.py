"""Calls that have no key: for broadcast rows, and for rows that were dealt to the shards.

Whatever belongs to a key is refused there. A broadcast row is processed in every shard, so that all change their
broadcast state alike; what comes of it besides (results, dead letters, metrics) counts in the first shard only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from headrace._graph.nodes import KeyedProcess
from headrace._runtime.metrics import Metrics
from headrace._runtime.process.context import Context
from headrace._runtime.process.results import Results
from headrace._runtime.process.states.stores import Stores
from headrace.errors import UserCodeError

__all__ = ["Keyless", "NoKey"]


class NoKey:
    """Stands where the code of a key would: it cannot be used as one."""

    def __init__(self, uid: str, where: str) -> None:
        self._uid = uid
        self._where = where

    def __index__(self) -> NoReturn:
        raise self.refusal("ctx.key")

    def refusal(self, what: str) -> UserCodeError:
        """What to say to code that asks for something of a key."""
        return UserCodeError(f"The code of step '{self._uid}' uses {what}, but {self._where}.")


class Keyless:
    """The calls of a step that have no key."""

    def __init__(
        self, node: KeyedProcess, stores: Stores, context: Context, *, is_first: bool
    ) -> None:
        self._uid = node.uid
        self._stores = stores
        self._context = context
        #: Whether this is the shard in which the results of broadcast rows count.
        self._is_first = is_first
        self._of_broadcast = NoKey(
            node.uid, "a broadcast row has no key; do this where rows with keys are processed"
        )
        self._of_dealt = NoKey(node.uid, "its rows have no keys; call key_by(...) first")

    @contextmanager
    def dealt(self) -> Iterator[NoKey]:
        """Rows that came to this shard by chance; yields what to use as their key."""
        with self._refusing(self._of_dealt):
            yield self._of_dealt

    @contextmanager
    def broadcast(self, results: Results, dead: list[Any]) -> Iterator[NoKey]:
        """Broadcast rows: their state may be written. In other shards than the first nothing comes out."""
        marks, metrics = (results.mark(), len(dead)), self._context.metrics
        if not self._is_first:
            self._context.metrics = Metrics(self._uid)
        self._stores.whole.let_write(allowed=True)
        try:
            with self._refusing(self._of_broadcast):
                yield self._of_broadcast
        finally:
            self._stores.whole.let_write(allowed=False)
            self._context.metrics = metrics
        # Rules may be timeless where rows are not, and what comes of them goes the same way.
        results.date(marks[0])
        if not self._is_first:
            results.undo(marks[0])
            del dead[marks[1] :]

    @contextmanager
    def _refusing(self, key: NoKey) -> Iterator[None]:
        timers = self._context.timers
        self._context.timers = _Refused(key, "ctx.timers")  # type: ignore[assignment]
        self._stores.lend(lambda name: _Refused(key, f"the state '{name}', which belongs to a key"))
        try:
            yield
        finally:
            self._stores.lend()
            self._context.timers = timers


class _Refused:
    """Stands where code finds its state or its timers, and refuses whatever is asked of it."""

    def __init__(self, key: NoKey, what: str) -> None:
        self._error = key.refusal(what)

    def __getattr__(self, _: str) -> Any:
        raise self._error

    def __getitem__(self, _: Any) -> Any:
        raise self._error

    def __setitem__(self, _: Any, value: Any) -> None:
        raise self._error
