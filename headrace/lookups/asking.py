"""The rows of many keys at once, with the failure of each key that has one.

Keys are asked for by as few calls as `batch_size` allows. With `apart` a call that fails is made again for each half of
its keys, and so on, until those are found that cannot be looked up: one bad key costs some calls, and not the rows of
the others. An error that speaks of the other system and not of a key is that of all keys of its call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import EngineError, UserCodeError
from headrace.lookups.cache import MISSING
from headrace.lookups.function import LookupFunction, gathering_of
from headrace.lookups.gathering import Gathering

__all__ = ["Answers", "ask", "is_of_a_key"]


# Without a repr of its own: asyncio shows the result of a task, if to nobody, when it gives the signals back.
@dataclass(repr=False)
class Answers:
    """Rows by key, None where there is none; and the last error of each key whose calls failed."""

    rows: dict[Any, Any] = field(default_factory=dict)
    failures: dict[Any, BaseException] = field(default_factory=dict)


async def ask(
    function: LookupFunction[Any, Any],
    keys: Sequence[Hashable],
    *,
    apart: bool = False,
    limit_s: float | None = None,
) -> Answers:
    """What a look-up has for keys, which are all different. A call may take `limit_s`, from when it is its turn."""
    gathering, found = gathering_of(function), Answers()
    found.rows = gathering.entries.get_all(keys)
    missing = [key for key in keys if found.rows[key] is MISSING]
    size = function.batch_size
    parts = [missing[first : first + size] for first in range(0, len(missing), size)]
    turns = asyncio.Semaphore(function.concurrency)

    async def in_turn(part: Sequence[Hashable]) -> bool:
        async with turns:
            return await _asked(gathering, part, found, limit_s)

    failed = await asyncio.gather(*map(in_turn, parts))
    # One behind the other: who fails should not be asked more at once than before.
    waiting = [part for part, again in zip(parts, failed, strict=True) if apart and again]
    while waiting:
        part = waiting.pop()
        halves = (part[: len(part) // 2], part[len(part) // 2 :]) if len(part) > 1 else ()
        waiting += [half for half in halves if await _asked(gathering, half, found, limit_s)]
    for key in found.failures:
        del found.rows[key]
    return found


def is_of_a_key(error: BaseException) -> bool:
    """Whether other keys of the same call may do better."""
    return not isinstance(error, EngineError | UserCodeError | ConnectionError | TimeoutError)


async def _asked(
    gathering: Gathering, keys: Sequence[Hashable], found: Answers, limit_s: float | None
) -> bool:
    """Ask for keys by one call, or wait for those that are on their way. Whether to try them in smaller parts."""
    calls = [gathering.ask(key) for key in keys]
    waited = {call: call.found() for call in dict.fromkeys(calls)}
    results = await asyncio.gather(
        *(asyncio.wait_for(answer, limit_s) for answer in waited.values()), return_exceptions=True
    )
    came = dict(zip(waited, results, strict=True))
    again = False
    for key, call in zip(keys, calls, strict=True):
        answer = came[call]
        if limit_s is not None and isinstance(answer, TimeoutError) and not answer.args:
            answer = came[call] = TimeoutError(f"no answer within {limit_s:g} s (call_limit)")
        if isinstance(answer, BaseException):
            found.failures[key] = answer
            again = again or is_of_a_key(answer)
        else:
            found.rows[key] = answer.get(key)
            found.failures.pop(key, None)
    return again
