"""A real HTTP server that is slow, fails and recovers as its paths say, and a client for it.

    GET /17?ms=20&fails=2&drops=1     waits 20 ms; the first two requests for 17 get a 503, the next one no answer at all

Every answer is the number in the path times ten. `slow=2` makes only the first two requests wait.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit


class SlowServer:
    """Answers in a thread of its own, and counts."""

    def __init__(self) -> None:
        #: By path, how often it was asked for.
        self.requests: Counter[str] = Counter()
        #: The most requests that were being answered at one time, and connections that clients gave up.
        self.most = 0
        self.given_up = 0
        self.connections = 0
        self._now = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        started = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(started, self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def asked(self) -> int:
        """Requests in all."""
        return sum(self.requests.values())

    def await_given_up(self, count: int) -> None:
        """Wait until the server has noticed that so many clients are gone."""
        deadline = time.monotonic() + 10
        while self.given_up != count:
            assert time.monotonic() < deadline, f"{self.given_up} were given up, not {count}"
            time.sleep(0.005)

    async def _end(self) -> None:
        self._server.close()
        # A connection that has just been accepted gets its task in the next rounds, and only that closes it.
        await asyncio.sleep(0.02)
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                answer = asyncio.ensure_future(self._answer(request.decode().split()[1]))
                gone = asyncio.ensure_future(reader.read(1))
                await asyncio.wait([answer, gone], return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    self.given_up += 1
                    answer.cancel()
                    break
                gone.cancel()  # a client that waits for its answer says nothing more
                await asyncio.wait([gone])
                if (text := answer.result()) is None:
                    break
                writer.write(text.encode())
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: str) -> str | None:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            return await self._text(path)
        finally:
            self._now -= 1

    async def _text(self, path: str) -> str | None:
        parts = urlsplit(path)
        options = {name: int(found[0]) for name, found in parse_qs(parts.query).items()}
        self.requests[parts.path] += 1
        number = self.requests[parts.path]
        if number <= options.get("slow", number):
            await asyncio.sleep(options.get("ms", 0) / 1000)
        fails, drops = options.get("fails", 0), options.get("drops", 0)
        if fails < number <= fails + drops:
            return None
        status, body = (
            ("503 Unavailable", "later") if number <= fails else ("200 OK", f"{parts.path[1:]}0")
        )
        return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n{body}"


class Unavailable(Exception):
    """The server said no."""


async def ask(port: int, path: str) -> int:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await request(reader, writer, path)
    finally:
        writer.close()


async def request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> int:
    """One request on a connection that is there."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    status = (await reader.readline()).decode()
    if not status:
        raise ConnectionResetError("the server hung up")
    length = int((await reader.readline()).split(b":")[1])
    await reader.readline()
    body = await reader.readexactly(length)
    if " 200 " not in status:
        raise Unavailable(status.strip())
    return int(body)


class Client:
    """An object to map with, that keeps connections between calls, batches and epochs."""

    def __init__(self, port: int) -> None:
        self.port = port
        #: "open" and "close", as they are called; a copy of this object works, and shares it.
        self.log: list[str] = []
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self) -> None:
        self.log.append("open")

    async def close(self) -> None:
        self.log.append("close")
        for _, writer in self._idle:
            writer.close()
            await writer.wait_closed()
        self._idle.clear()

    async def __call__(self, row: Any) -> int:
        pair = (
            self._idle.pop()
            if self._idle
            else await asyncio.open_connection("127.0.0.1", self.port)
        )
        try:
            made = await request(*pair, f"/{row.id}")
        except BaseException:
            pair[1].close()
            raise
        self._idle.append(pair)
        return made
