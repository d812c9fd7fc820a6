"""Many questions, few calls: what is asked for in one turn of the event loop is fetched together.

Who asks for a key that is on its way waits for the same call. A call that nobody waits for any more is cancelled, so one
that hangs does not hold up later questions for its keys. What failed is not remembered.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Coroutine, Hashable, Mapping
from typing import Any

from headrace.errors import UserCodeError
from headrace.lookups.cache import Entries

__all__ = ["Call", "Gathering"]

Found = Mapping[Any, Any]


class Call:
    """Keys that are fetched together."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self.keys: dict[Hashable, None] = {}
        self.waiting = 0
        self.task: asyncio.Task[None] | None = None
        self.future: asyncio.Future[Found] = gathering.loop.create_future()

    def found(self) -> Coroutine[Any, Any, Found]:
        """The rows, when they are there. Whoever is cancelled there leaves the call to the others."""
        # At once, not when the coroutine first runs: until then the call could be given up.
        self.waiting += 1
        return self._found()

    async def _found(self) -> Found:
        try:
            return await asyncio.shield(self.future)
        except asyncio.CancelledError:
            self.waiting -= 1
            if not self.waiting and not self.future.done():
                self._give_up()
            raise

    def _give_up(self) -> None:
        self._gathering.forget(self)
        self.future.cancel()
        if self.task is not None:
            self.task.cancel()


class Gathering:
    """The calls of one look-up in one event loop. `works` is the object that is opened there."""

    def __init__(self, works: Any, entries: Entries, batch_size: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.entries = entries
        self._works = works
        self._batch_size = batch_size
        self._opening = asyncio.Lock()
        #: Keys that are collected or on their way.
        self._calls: dict[Hashable, Call] = {}
        self._collected: Call | None = None
        #: Closes `works` when the loop is shut down in good order.
        self._closer: AsyncGenerator[None, None] | None = None

    def ask(self, key: Hashable) -> Call:
        """The call that will bring this key."""
        call = self._calls.get(key)
        if call is None:
            call = self._collected
            if call is None or len(call.keys) >= self._batch_size:
                call = self._collected = Call(self)
                self.loop.call_soon(self._start, call)
            call.keys[key] = None
            self._calls[key] = call
        return call

    def forget(self, call: Call) -> None:
        """Nobody who asks from now on waits for this call."""
        if self._collected is call:
            self._collected = None
        for key in call.keys:
            if self._calls.get(key) is call:
                del self._calls[key]

    def _start(self, call: Call) -> None:
        if self._collected is call:
            self._collected = None
        if not call.future.cancelled():
            call.task = self.loop.create_task(self._fetch(call))

    async def _fetch(self, call: Call) -> None:
        try:
            found = await self._fetched(list(call.keys))
        except asyncio.CancelledError:
            call.future.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - told to those who wait
            call.future.set_exception(error)
            call.future.exception()  # nobody may be left to hear it
        else:
            for key in call.keys:
                self.entries.put(key, found.get(key))
            call.future.set_result(found)
        finally:
            self.forget(call)

    async def _fetched(self, keys: list[Hashable]) -> Found:
        async with self._opening:
            if self._closer is None:
                await _awaited(self._works.open())
                closer = _closing(self._works)
                await anext(closer)
                self._closer = closer
        found = await self._works.fetch(keys)
        if not isinstance(found, Mapping):
            name = type(self._works).__name__
            raise UserCodeError(
                f"{name}.fetch must return a mapping of keys to rows, not {found!r:.80}"
            )
        return found


async def _closing(works: Any) -> AsyncGenerator[None, None]:
    """A loop that ends in good order closes its generators: the one moment at which connections can be closed."""
    try:
        yield
    finally:
        await _awaited(works.close())


async def _awaited(made: Any) -> None:
    if inspect.isawaitable(made):
        await made
