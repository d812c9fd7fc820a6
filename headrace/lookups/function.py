"""The interface of look-ups: a user's `fetch` for many keys behind a `get` for one.

An object travels to the workers without what it has opened. Each process has a copy of its own that is opened at the first
question, stays open from batch to batch, and is closed when the event loop of the process ends.
"""

from __future__ import annotations

import asyncio
import atexit
import copy
import os
import secrets
import threading
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from headrace.errors import BuildError
from headrace.lookups.cache import MISSING, Cache, Entries
from headrace.lookups.gathering import Gathering
from headrace.lookups.rows import rows_schema
from headrace.schema import as_schema

__all__ = ["LookupFunction", "gathering_of"]

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
_T = TypeVar("_T")


class LookupFunction(Generic[K, R]):
    """Rows of a system outside by key. Write `fetch`, or `lookup` if the client is not asynchronous.

        class Customers(hr.lookups.LookupFunction):
            cache = hr.lookups.Cache(size=10_000, ttl=timedelta(minutes=1))

            async def fetch(self, keys):
                return await client.customers(keys)      # {key: row}, without the keys that have none

        customers = Customers()

        async def enrich(order) -> Enriched:             # for map_async
            customer = await customers.get(order.customer)

    Keys that are asked for at the same time are fetched by one call, each once. A key that is None has no row. Errors go
    to all who wait, and are not kept. Rows are handed out as they are kept: do not change them.
    """

    #: What each process keeps; None: every key is asked for again.
    cache: Cache | None = None
    #: At most so many keys to a call.
    batch_size: int = 1000
    #: For `join_lookup`: how many calls may be on their way at once.
    concurrency: int = 4
    #: For `join_lookup`: the columns of a row, as a dataclass, a mapping of names to types or an Arrow schema.
    schema: Any = None
    #: For `join_lookup`: what the columns of the key are called there, if rows may have them.
    key_columns: tuple[str, ...] = ()
    _identity: str

    def __new__(cls, *_arguments: Any, **_options: Any) -> LookupFunction[K, R]:
        if cls.fetch is LookupFunction.fetch and cls.lookup is LookupFunction.lookup:
            raise BuildError(
                f"{cls.__name__} must define 'async def fetch(self, keys)' or 'def lookup(self, keys)'"
            )
        made = super().__new__(cls)
        # Travels with the object: copies of it that come into a process later find what the first has opened.
        made._identity = secrets.token_hex(8)
        return made

    def __repr__(self) -> str:
        return type(self).__name__

    async def open(self) -> None:
        """Called before the first `fetch` of a process, in its event loop. May be a plain function."""

    async def close(self) -> None:
        """Called when the event loop ends. May be a plain function."""

    async def fetch(self, keys: Sequence[K]) -> Mapping[K, R | None]:
        """The rows of these keys, which are all different. A key that is absent or None has no row."""
        return await asyncio.to_thread(self.lookup, keys)

    def lookup(self, keys: Sequence[K]) -> Mapping[K, R | None]:
        """The same for clients that are not asynchronous; called in a thread."""
        raise NotImplementedError

    def typed(self, schema: pa.Schema | None) -> tuple[LookupFunction[K, R], pa.Schema | None]:
        """For `join_lookup`: the look-up that gives rows of these columns, and the columns; None if nobody knows them.

        Without any they are those of `schema`, or of the rows that `fetch` or `lookup` is annotated with.
        """
        if schema is None and self.schema is not None:
            schema = as_schema(self.schema)
        if schema is None:
            named = self.lookup if type(self).fetch is LookupFunction.fetch else self.fetch
            schema = rows_schema(named)
        return self, schema

    def _anew(self) -> Self:
        """A copy that shares nothing of what is known with this one."""
        made = copy.copy(self)
        made._identity = secrets.token_hex(8)  # noqa: SLF001 - of this class
        return made

    async def get(self, key: K | None) -> R | None:
        """The row of a key, or None."""
        if key is None:
            return None
        gathering = gathering_of(self)
        row: R | None = gathering.entries.get(key)
        if row is MISSING:
            row = (await gathering.ask(key).found()).get(key)
        return row

    async def get_many(self, keys: Sequence[K | None]) -> list[R | None]:
        """The rows of keys, in their order; a key that is there twice is asked for once."""
        gathering = gathering_of(self)
        rows: dict[K | None, R | None] = {}
        asked = {}
        for key in dict.fromkeys(keys):
            row = None if key is None else gathering.entries.get(key)
            if row is MISSING:
                asked[key] = gathering.ask(key)
            else:
                rows[key] = row
        await asyncio.gather(*(call.found() for call in set(asked.values())))
        for key, call in asked.items():
            rows[key] = call.future.result().get(key)
        return [rows[key] for key in keys]

    def lookup_batch(self, keys: pa.Array | pa.ChunkedArray | Sequence[K | None]) -> list[R | None]:
        """`get_many` for code that is not asynchronous. Of an array of structs a key is a tuple."""
        return _run(self.get_many(_listed(keys)))


#: What is kept of each look-up, and its calls by identity and event loop. Rows outlive a loop, connections do not.
_entries: dict[str, Entries] = {}
_gatherings: dict[tuple[str, int], Gathering] = {}
#: Of the process that this one was forked from. Collecting them would close connections that are not ours.
_inherited: list[Any] = []
_runner: asyncio.Runner | None = None
_turn = threading.Lock()


def gathering_of(function: LookupFunction[Any, Any]) -> Gathering:
    """The calls of a look-up in the event loop that runs."""
    loop, identity = asyncio.get_running_loop(), function._identity  # noqa: SLF001 - of this module
    known = _gatherings.get((identity, id(loop)))
    if known is not None and known.loop is loop:
        return known
    for place in [place for place, old in _gatherings.items() if old.loop.is_closed()]:
        del _gatherings[place]
    entries = _entries.setdefault(identity, Entries(function.cache))
    made = Gathering(copy.copy(function), entries, function.batch_size)
    _gatherings[identity, id(loop)] = made
    return made


def _listed(keys: Any) -> list[Any]:
    if not isinstance(keys, pa.Array | pa.ChunkedArray):
        return list(keys)
    values: list[Any] = keys.to_pylist()
    if pa.types.is_struct(keys.type):
        return [None if value is None else tuple(value.values()) for value in values]
    return values


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    """In a loop of our own, which stays for the connections in it."""
    if not _turn.acquire(blocking=False):
        # Another thread is in that loop, and may wait there for us: a look-up may use another one.
        return _aside(lambda: asyncio.run(work))
    try:
        return _aside(lambda: _own_runner().run(work))
    finally:
        _turn.release()


def _aside(call: Callable[[], _T]) -> _T:
    """A notebook has a loop running in this very thread, and a thread cannot run two."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    with ThreadPoolExecutor(1) as aside:
        return aside.submit(call).result()


def _own_runner() -> asyncio.Runner:
    global _runner
    if _runner is None:
        _runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
    return _runner


@atexit.register
def _end() -> None:
    global _runner
    if _runner is not None:
        _runner.close()
        _runner = None


def _forget() -> None:
    global _runner, _turn
    _inherited.extend([*_gatherings.values(), _runner])
    _gatherings.clear()
    _entries.clear()
    _runner, _turn = None, threading.Lock()


# A forked process opens its own.
os.register_at_fork(after_in_child=_forget)
