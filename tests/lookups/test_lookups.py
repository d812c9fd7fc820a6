import asyncio
import pickle
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace import testing
from headrace.connectors import memory
from headrace.errors import BuildError, UserCodeError
from headrace.lookups import Cache, LookupFunction
from headrace.lookups.cache import MISSING, Entries
from tests.examples import examples

LOG: list[str] = []


class Squares(LookupFunction[int, int]):
    """Knows the squares of even numbers."""

    def __init__(self, cache: Cache | None = None, batch_size: int = 1000) -> None:
        self.cache = cache
        self.batch_size = batch_size
        self.calls: list[list[int]] = []
        self.fails = 0

    async def open(self) -> None:
        LOG.append("open")
        self.connection = object()

    async def close(self) -> None:
        LOG.append("close")

    async def fetch(self, keys: Sequence[int]) -> Mapping[int, int]:
        assert self.connection
        self.calls.append(list(keys))
        for _ in range(9):
            await asyncio.sleep(0)
        if len(self.calls) <= self.fails:
            raise ConnectionError("away")
        return {key: key * key for key in keys if key % 2 == 0}


async def gets(function: Squares, *keys: int) -> list[int | None]:
    return list(await asyncio.gather(*(function.get(key) for key in keys)))


def test_what_is_asked_for_together_is_fetched_together_and_once() -> None:
    function = Squares()
    assert asyncio.run(gets(function, 2, 4, 2, 3, 4)) == [4, 16, 4, None, 16]
    assert function.calls == [[2, 4, 3]]


def test_a_call_takes_no_more_keys_than_its_limit() -> None:
    function = Squares(batch_size=2)
    assert asyncio.run(gets(function, 2, 4, 6, 8, 10)) == [4, 16, 36, 64, 100]
    assert function.calls == [[2, 4], [6, 8], [10]]


def test_who_asks_for_a_key_on_its_way_waits_for_the_same_call() -> None:
    function = Squares()

    async def later() -> int | None:
        for _ in range(4):
            await asyncio.sleep(0)
        assert function.calls, "it is on its way"
        return await function.get(2)

    async def both() -> list[int | None]:
        return list(await asyncio.gather(function.get(2), later()))

    assert asyncio.run(both()) == [4, 4]
    assert function.calls == [[2]]


def test_rows_are_kept_and_so_is_that_there_is_none() -> None:
    function = Squares(Cache())

    async def twice() -> list[int | None]:
        return [*await gets(function, 2, 3), *await gets(function, 2, 3)]

    assert asyncio.run(twice()) == [4, None, 4, None]
    assert asyncio.run(gets(function, 2, 3)) == [4, None], "rows outlive an event loop"
    assert function.calls == [[2, 3]]


def test_errors_reach_all_who_wait_and_are_not_kept() -> None:
    function = Squares(Cache())
    function.fails = 1

    async def thrice() -> list[Any]:
        failed = await asyncio.gather(function.get(2), function.get(4), return_exceptions=True)
        return [*failed, await function.get(2)]

    first, second, third = asyncio.run(thrice())
    assert isinstance(first, ConnectionError)
    assert isinstance(second, ConnectionError)
    assert third == 4


class Hangs(Squares):
    async def fetch(self, keys: Sequence[int]) -> Mapping[int, int]:
        self.calls.append(list(keys))
        if len(self.calls) == 1:
            try:
                await asyncio.sleep(60)
            finally:
                LOG.append("cancelled")
        return dict.fromkeys(keys, 1)


def test_a_call_that_nobody_waits_for_is_cancelled_and_its_keys_are_asked_for_again() -> None:
    function = Hangs()
    LOG.clear()

    async def impatient() -> tuple[int | None, list[str]]:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(function.get(2), 0.01)
        found = await asyncio.wait_for(function.get(2), 10)
        return found, list(LOG)

    found, log = asyncio.run(impatient())
    assert found == 1
    assert log == ["open", "cancelled"]


def test_one_who_gives_up_leaves_the_call_to_the_others() -> None:
    function = Squares()

    async def one_of_two() -> int | None:
        other = asyncio.ensure_future(function.get(2))
        gone = asyncio.ensure_future(function.get(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await other

    assert asyncio.run(one_of_two()) == 4
    assert function.calls == [[2]]


def test_one_who_has_just_joined_keeps_the_call_alive() -> None:
    function = Squares()

    async def joined() -> list[int | None]:
        gone = asyncio.ensure_future(function.get(2))
        await asyncio.sleep(0)
        # Asks in this turn, in which the only other one gives up.
        many = asyncio.ensure_future(function.get_many([2, 4]))
        gone.cancel()
        return await many

    assert asyncio.run(joined()) == [4, 16]


def test_one_who_gives_up_in_the_turn_of_another() -> None:
    function = Squares()

    async def turn() -> list[int | None]:
        many = asyncio.ensure_future(function.get_many([2]))
        gone = asyncio.ensure_future(function.get(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await many

    assert asyncio.run(turn()) == [4]


def test_it_is_opened_once_and_closed_with_the_loop() -> None:
    function = Squares()
    LOG.clear()

    async def some() -> None:
        await gets(function, 1)
        await gets(function, 2)

    asyncio.run(some())
    assert LOG == ["open", "close"]


def test_it_travels_without_what_was_opened_and_copies_share_what_is_known() -> None:
    function = Squares(Cache())
    asyncio.run(gets(function, 2))
    assert not hasattr(function, "connection")
    copied = pickle.loads(pickle.dumps(function))
    assert asyncio.run(gets(copied, 2)) == [4]
    assert function.calls == [[2]]


def test_a_batch_is_looked_up_by_code_that_is_not_asynchronous() -> None:
    function = Squares(batch_size=2)
    keys = pa.array([2, None, 2, 4, 6, 3])
    assert function.lookup_batch(keys) == [4, None, 4, 16, 36, None]
    assert sorted(map(len, function.calls)) == [2, 2]

    async def from_a_notebook() -> list[int | None]:
        return function.lookup_batch([8])

    assert asyncio.run(from_a_notebook()) == [64]


class Pairs(LookupFunction[tuple[int, str], str]):
    def lookup(self, keys: Sequence[tuple[int, str]]) -> Mapping[tuple[int, str], str]:
        return {(n, text): text * n for n, text in keys}


def test_a_client_that_is_not_asynchronous_and_keys_of_several_columns() -> None:
    keys = pa.array([{"n": 2, "text": "a"}, None, {"n": 1, "text": "b"}])
    assert Pairs().lookup_batch(keys) == ["aa", None, "b"]


def test_mistakes_are_told() -> None:
    class Nothing(LookupFunction[int, int]):
        pass

    class NoMapping(Squares):
        async def fetch(self, keys: Sequence[int]) -> Any:
            return [1]

    with pytest.raises(BuildError, match="must define"):
        Nothing()
    with pytest.raises(BuildError, match="cache=None"):
        Cache(size=0)
    with pytest.raises(UserCodeError, match="must return a mapping"):
        asyncio.run(gets(NoMapping(), 1))


@given(
    st.lists(
        st.tuples(st.sampled_from("gpt"), st.integers(0, 5), st.none() | st.integers(0, 9)),
        max_size=40,
    ),
    st.integers(1, 4),
    st.booleans(),
)
@examples(15)
def test_the_cache_is_a_dictionary_that_forgets(
    steps: list[tuple[str, int, int | None]], size: int, negative: bool
) -> None:
    now = [0.0]
    cache = Cache(size, timedelta(seconds=3), negative, lambda: now[0])
    entries, model = Entries(cache), dict[int, tuple[float, int | None]]()
    for what, key, row in steps:
        if what == "t":
            now[0] += 1
        elif what == "p":
            entries.put(key, row)
            if row is not None or negative:
                model.pop(key, None)
                model[key] = (now[0] + 3, row)
                if len(model) > size:
                    del model[next(iter(model))]
        else:
            kept = model.pop(key, None)
            if kept is not None and now[0] < kept[0]:
                model[key] = kept
                assert entries.get(key) == kept[1]
            else:
                assert entries.get(key) is MISSING
        assert len(entries) == len(model)


def test_a_step_looks_up_from_its_coroutine_function(tmp_path: Any) -> None:
    function = Squares(Cache())

    async def square(row: Any) -> dict[str, Any]:
        return {"n": row.n, "square": await function.get(row.n % 10)}

    env = hr.Environment("squares", checkpoint=tmp_path / "state")
    schema = pa.schema([("n", pa.int64()), ("square", pa.int64())])
    result = memory.MemorySink()
    rows = env.from_source(memory.MemorySource([{"n": n} for n in range(100)]), uid="in")
    rows.map_async(square, schema=schema, capacity=50, uid="squared").sink_to(result, uid="out")
    testing.run_local(env)
    assert result.to_pylist()[14] == {"n": 14, "square": 16}
    assert function.calls == [list(range(10))]


def test_a_lookup_may_use_another_one() -> None:
    """Its code runs in a thread, while the thread that asked waits for it."""

    class Inner(LookupFunction[int, int]):
        def lookup(self, keys: Sequence[int]) -> dict[int, int]:
            return {key: key + 1 for key in keys}

    inner = Inner()

    class Outer(LookupFunction[int, int]):
        def lookup(self, keys: Sequence[int]) -> dict[int, int]:
            return {
                key: 10 * row
                for key, row in zip(keys, inner.lookup_batch(keys), strict=True)
                if row is not None
            }

    found: list[object] = []
    asking = threading.Thread(
        target=lambda: found.append(Outer().lookup_batch([1, 2])), daemon=True
    )
    asking.start()
    asking.join(10)
    assert found == [[20, 30]]
