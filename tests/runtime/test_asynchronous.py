"""Coroutine functions on rows, asking a real server that is slow, fails and recovers."""

import asyncio
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace._graph.nodes import ERRORS, MAIN
from headrace._graph.nodes import MapAsync as Step
from headrace._runtime.asynchronous import MapAsync, loop
from headrace._runtime.lifecycle import close_all
from headrace._runtime.rows import Origin, Rows
from headrace.config import Retry
from headrace.errors import UserCodeError
from tests.runtime.slow_server import Client, SlowServer, Unavailable, ask

ROWS = pa.schema([("id", pa.int64()), ("path", pa.string())])
VALUE = pa.schema([("value", pa.int64())])
MILLISECOND = timedelta(milliseconds=1)
#: Long enough for a machine that has other things to do.
LIMIT = 800 * MILLISECOND
SOON = Retry(attempts=3, delay=MILLISECOND)


ROOT = Path(__file__).parents[2]
ENDING = """
import asyncio, os, signal
from headrace._runtime.asynchronous import loop
from headrace._runtime.lifecycle import close_on_hangup

class Client:
    async def open(self):
        print("opened", flush=True)
        self.task = asyncio.create_task(self.beat())
    async def close(self):
        print("closed", flush=True)
    async def beat(self):
        try:
            await asyncio.sleep(60)
        finally:
            print("cancelled", flush=True)

loop.open_function("it", Client())
loop.run(asyncio.sleep(0))
# Under nohup it would be ignored, which a Spark worker sets back, too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
close_on_hangup()
"""


@pytest.fixture
def server() -> Iterator[SlowServer]:
    with SlowServer() as running:
        yield running
    close_all()


def rows(*paths: str) -> Rows:
    count = len(paths)
    batch = pa.RecordBatch.from_pydict({"id": range(count), "path": paths}, schema=ROWS)
    return Rows(batch, np.arange(count) * 10, Origin("orders", "0", np.arange(100, 100 + count)))


def asking(server: SlowServer) -> Callable[[Any], Awaitable[int]]:
    async def fetch(row: Any) -> int:
        return await ask(server.port, row.path)

    return fetch


def step(
    function: Any, *, timeout: timedelta | None = 10_000 * MILLISECOND, **options: Any
) -> MapAsync:
    limit_us = None if timeout is None else timeout // timedelta(microseconds=1)
    options.setdefault("on_timeout", options.get("on_error", "fail"))
    node = Step(
        id=1, uid="it", inputs=(), schema=VALUE, function=function, limit_us=limit_us, **options
    )
    return MapAsync(node)


def outputs(operator: MapAsync, given: Rows) -> dict[str, Rows]:
    return dict(operator.process(given))


def values(found: Rows) -> list[int]:
    return found.batch.column("value").to_pylist()


class TestOrder:
    PATHS = tuple(f"/{n}?ms={300 - 150 * n}" for n in range(3))

    def test_results_stand_in_the_order_of_rows(self, server: SlowServer) -> None:
        found = outputs(step(asking(server)), rows(*self.PATHS))[MAIN]
        assert values(found) == [0, 10, 20]
        assert found.timestamps.tolist() == [0, 10, 20]
        assert found.origin.offsets.tolist() == [100, 101, 102]

    def test_or_in_that_in_which_they_came_and_time_and_origin_go_with_them(
        self, server: SlowServer
    ) -> None:
        found = outputs(step(asking(server), ordered=False), rows(*self.PATHS))[MAIN]
        assert values(found) == [20, 10, 0]
        assert found.timestamps.tolist() == [20, 10, 0]
        assert found.origin.offsets.tolist() == [102, 101, 100]


@pytest.mark.parametrize("capacity", [1, 7])
def test_no_more_calls_at_a_time_than_the_capacity(server: SlowServer, capacity: int) -> None:
    paths = [f"/{n}?ms=5" for n in range(4 * capacity)]
    found = outputs(step(asking(server), capacity=capacity), rows(*paths))[MAIN]
    assert values(found) == [10 * n for n in range(4 * capacity)]
    assert server.most == capacity


def test_a_batch_without_rows_gives_none() -> None:
    async def never(row: Any) -> int:
        raise AssertionError

    assert outputs(step(never), rows()) == {}


class TestRetry:
    def test_a_server_that_recovers_is_asked_until_it_has(self, server: SlowServer) -> None:
        given = rows("/1", "/2?fails=2", "/3?fails=1&drops=1")
        assert values(outputs(step(asking(server), retry=SOON), given)[MAIN]) == [10, 20, 30]
        assert server.requests == {"/1": 1, "/2": 3, "/3": 3}

    def test_the_last_attempt_fails_the_job_by_name_and_place(self, server: SlowServer) -> None:
        with pytest.raises(
            UserCodeError, match=r"'it' raised .*Unavailable: .*503[^$]*offset 101"
        ) as caught:
            outputs(step(asking(server), retry=SOON), rows("/1", "/2?fails=3"))
        assert "path='/2?fails=3'" in str(caught.value)
        assert "in fetch" in str(caught.value)
        assert "headrace/_runtime" not in str(caught.value)
        assert server.requests["/2"] == 3

    def test_or_makes_a_dead_letter_with_cause_traceback_and_place(
        self, server: SlowServer
    ) -> None:
        operator = step(asking(server), retry=SOON, on_error="dead_letter")
        found = outputs(operator, rows("/1", "/2?fails=3", "/3"))
        assert values(found[MAIN]) == [10, 30]
        assert found[MAIN].timestamps.tolist() == [0, 20]
        [letter] = found[ERRORS].batch.to_pylist()
        assert letter["cause"].endswith("Unavailable: HTTP/1.1 503 Unavailable")
        assert "in fetch" in letter["traceback"]
        assert (letter["uid"], letter["partition"], letter["offset"]) == ("it", "0", 101)
        assert letter["payload"] == '{"id": 1, "path": "/2?fails=3"}'
        assert found[ERRORS].timestamps.tolist() == [10]

    def test_only_the_errors_that_were_named_are_tried_again(self, server: SlowServer) -> None:
        retry = Retry(attempts=9, delay=MILLISECOND, retry_on=(ConnectionError,))
        operator = step(asking(server), retry=retry, on_error="dead_letter")
        found = outputs(operator, rows("/1?drops=2", "/2?fails=1"))
        assert values(found[MAIN]) == [10]
        assert server.requests == {"/1": 3, "/2": 1}

    def test_pauses_grow(self) -> None:
        called: list[float] = []

        async def fails(row: Any) -> int:
            called.append(time.monotonic())
            raise OSError("no")

        retry = Retry(attempts=3, delay=30 * MILLISECOND, backoff=3)
        outputs(step(fails, retry=retry, on_error="dead_letter"), rows("/1"))
        first, second = called[1] - called[0], called[2] - called[1]
        assert first >= 0.029
        assert second >= 0.089


class TestTimeout:
    def test_what_takes_too_long_fails_the_job(self, server: SlowServer) -> None:
        operator = step(asking(server), timeout=LIMIT)
        began = time.monotonic()
        with pytest.raises(
            UserCodeError, match=r"TimeoutError: no result within 0:00:00.8[^$]*101"
        ):
            outputs(operator, rows("/1", "/2?ms=20000"))
        assert 0.8 <= time.monotonic() - began < 15

    def test_or_makes_a_dead_letter_that_says_where_it_hung(self, server: SlowServer) -> None:
        operator = step(asking(server), timeout=LIMIT, on_error="dead_letter")
        found = outputs(operator, rows("/1", "/2?ms=20000", "/3"))
        assert values(found[MAIN]) == [10, 30]
        [letter] = found[ERRORS].batch.to_pylist()
        assert letter["cause"] == "TimeoutError: no result within 0:00:00.800000"
        assert "in request" in letter["traceback"]
        server.await_given_up(1)

    def test_each_attempt_has_the_whole_time(self, server: SlowServer) -> None:
        operator = step(asking(server), timeout=LIMIT, retry=SOON)
        assert values(outputs(operator, rows("/1?ms=20000&slow=2"))[MAIN]) == [10]
        assert server.requests["/1"] == 3

    def test_it_counts_from_the_start_of_a_call_not_of_the_batch(self, server: SlowServer) -> None:
        operator = step(asking(server), timeout=LIMIT, capacity=1)
        paths = [f"/{n}?ms=200" for n in range(6)]
        assert len(outputs(operator, rows(*paths))[MAIN]) == 6

    def test_time_outs_and_errors_are_chosen_apart(self, server: SlowServer) -> None:
        options: dict[str, Any] = {"timeout": LIMIT, "on_error": "fail"}
        operator = step(asking(server), on_timeout="dead_letter", **options)
        assert len(outputs(operator, rows("/1?ms=20000", "/2"))[ERRORS]) == 1
        with pytest.raises(UserCodeError, match="Unavailable"):
            outputs(operator, rows("/1?ms=20000", "/3?fails=1"))

    def test_without_one_a_call_takes_as_long_as_it_takes(self, server: SlowServer) -> None:
        operator = step(asking(server), timeout=None)
        assert values(outputs(operator, rows("/1?ms=50"))[MAIN]) == [10]

    def test_a_result_that_comes_although_it_was_cancelled_counts(self) -> None:
        cancelling: list[int] = []

        async def stubborn(row: Any) -> int:
            task = asyncio.current_task()
            assert task is not None
            cancelling.append(task.cancelling())
            if row.id == 0:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    return 7
            return 8

        operator = step(stubborn, timeout=20 * MILLISECOND, capacity=1)
        assert values(outputs(operator, rows("", ""))[MAIN]) == [7, 8]
        assert cancelling == [0, 0]


@dataclass
class Watched:
    """Counts calls that are running, and sleeps; the row that is told to fails in between."""

    fails: int
    ends: Callable[[], Any]
    running: int = 0
    ended: list[int] = field(default_factory=list)

    async def __call__(self, row: Any) -> int:
        self.running += 1
        try:
            await asyncio.sleep(0.01 if row.id == self.fails else 60)
            return int(self.ends())
        finally:
            await asyncio.sleep(0)
            self.running -= 1
            self.ended.append(row.id)


def fail() -> None:
    raise ValueError("in the middle")


class TestFailure:
    @pytest.mark.parametrize(
        ("ends", "text"),
        [(fail, "ValueError: in the middle"), (lambda: sys.exit(3), "SystemExit: 3")],
    )
    def test_the_others_are_cancelled_and_awaited(self, ends: Any, text: str) -> None:
        watched = Watched(fails=2, ends=ends)
        with pytest.raises(UserCodeError, match=text):
            outputs(step(watched, capacity=4), rows(*[""] * 20))
        assert watched.running == 0
        assert sorted(watched.ended) == [0, 1, 2, 3]

    def test_the_server_sees_them_go(self, server: SlowServer) -> None:
        with pytest.raises(UserCodeError, match="Unavailable"):
            outputs(step(asking(server)), rows("/1?ms=20000", "/2?ms=20000", "/3?ms=50&fails=1"))
        server.await_given_up(2)

    def test_an_interrupt_passes_and_leaves_nothing_running(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        watched = Watched(fails=1, ends=interrupt)
        with pytest.raises(KeyboardInterrupt):
            outputs(step(watched, capacity=3), rows("", "", ""))
        outputs(step(Watched(fails=0, ends=lambda: 1)), rows(""))
        assert watched.running == 0

    def test_generators_can_be_used_behind_an_interrupt(self) -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        async def generated() -> AsyncIterator[int]:
            yield 7

        async def first(row: Any) -> int:
            return sum([number async for number in generated()])

        with pytest.raises(KeyboardInterrupt):
            outputs(step(Watched(fails=0, ends=interrupt)), rows(""))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            outputs(step(first), rows(""))

    def test_a_cancelled_error_of_the_function_itself_is_its_error(self) -> None:
        async def cancelled(row: Any) -> int:
            raise asyncio.CancelledError

        found = outputs(step(cancelled, on_error="dead_letter", capacity=1), rows("", ""))
        assert [row["cause"] for row in found[ERRORS].batch.to_pylist()] == [
            "asyncio.exceptions.CancelledError"
        ] * 2

    def test_a_result_of_the_wrong_type_is_a_failure_of_its_row(self) -> None:
        async def odd(row: Any) -> Any:
            return "x" if row.id == 1 else row.id

        with pytest.raises(UserCodeError, match=r"'value' must be int64[^$]*offset 101"):
            outputs(step(odd), rows("", "", ""))
        found = outputs(step(odd, on_error="dead_letter", ordered=False), rows("", "", ""))
        assert values(found[MAIN]) == [0, 2]
        assert found[ERRORS].origin.offsets.tolist() == [101]


class TestLoop:
    def test_an_object_is_opened_once_and_keeps_its_connections(self, server: SlowServer) -> None:
        client = Client(server.port)
        for _ in range(3):  # operators come and go with tasks and epochs
            assert values(outputs(step(client, capacity=2), rows(*["/"] * 6))[MAIN])[5] == 50
        assert server.asked == 18
        assert server.connections == 2
        assert client.log == ["open"]
        close_all()
        close_all()
        assert client.log == ["open", "close"]

    def test_what_was_closed_is_opened_again_when_it_is_needed(self, server: SlowServer) -> None:
        client = Client(server.port)
        for _ in range(2):
            assert values(outputs(step(client), rows("/", "/"))[MAIN]) == [0, 10]
            close_all()
        assert client.log == ["open", "close"] * 2
        assert loop._here().opened == {}

    def test_the_object_of_the_plan_stays_as_it_was(self) -> None:
        class Session:
            async def open(self) -> None:
                self.loop = asyncio.get_running_loop()  # cannot be pickled, as a session cannot

            async def __call__(self, row: Any) -> int:
                return int(self.loop is asyncio.get_running_loop())

        session = Session()
        assert values(outputs(step(session), rows(""))[MAIN]) == [1]
        assert vars(session) == {}
        close_all()

    def test_what_fails_to_open_fails_the_step_and_is_opened_again(
        self, server: SlowServer
    ) -> None:
        class Refused(Client):
            async def open(self) -> None:
                await super().open()
                if len(self.log) == 1:
                    raise Unavailable("no such service")

        client = Refused(server.port)
        with pytest.raises(UserCodeError, match=r"'it' raised .*no such service"):
            outputs(step(client), rows("/"))
        assert values(outputs(step(client), rows("/"))[MAIN]) == [0]

    @pytest.mark.parametrize(
        ("ends", "code"), [("", 0), ("os.kill(os.getpid(), signal.SIGHUP)", -signal.SIGHUP)]
    )
    def test_a_process_that_ends_in_good_order_closes_all(self, ends: str, code: int) -> None:
        program = [sys.executable, "-W", "error", "-c", f"{ENDING}\n{ends}"]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        assert done.stdout.split() == ["opened", "closed", "cancelled"][: 3 if code == 0 else 2]
        assert done.returncode == code

    def test_it_runs_where_a_loop_is_running_already(self, server: SlowServer) -> None:
        async def notebook() -> list[int]:
            return values(outputs(step(asking(server)), rows("/1"))[MAIN])

        assert asyncio.run(notebook()) == [10]

    def test_a_forked_process_makes_one_of_its_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def which(row: Any) -> int:
            return id(asyncio.get_running_loop())

        here = values(outputs(step(which), rows(""))[MAIN])
        assert values(outputs(step(which), rows(""))[MAIN]) == here
        parent = loop._here()
        monkeypatch.setattr(loop, "_home", parent)
        monkeypatch.setattr(loop, "_inherited", [])
        monkeypatch.setattr(loop.os, "getpid", lambda: -1)
        assert values(outputs(step(which), rows(""))[MAIN]) != here
        close_all()
        loop._here().end()
        assert loop._inherited == [parent]
