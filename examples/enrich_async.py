"""Adds to every order what a service knows of its customer, with many requests under way at a time.

The service is a real HTTP server that this program starts. It takes 20 ms for an answer, turns away who asks for every tenth
customer the first time, and does not know all customers: the former are asked for again, orders of strangers go to `errors`.

    python examples/enrich_async.py            2,000 orders on Spark; prints the result
    python examples/enrich_async.py --local    the same in this process, without Java
"""

import argparse
import asyncio
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace import testing
from headrace.connectors import generator, memory

ORDERS = pa.schema({"order": pa.int64(), "customer": pa.int64(), "amount": pa.float64()})
COUNTRIES = ["Austria", "Brazil", "Canada", "Denmark"]
CUSTOMERS = 200
#: Customers whom the service does not know.
STRANGERS = 5


@dataclass
class Enriched:
    """An order with what the service said."""

    order: int
    amount: float
    name: str
    country: str


class UnknownCustomer(Exception):
    """To ask again would not help."""


class Customers:
    """Asks the service, over connections that stay open from call to call and from epoch to epoch."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> None:
        """Called once in each process; here a library's client would get its session."""
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def close(self) -> None:
        """Called when the process ends."""
        for _, writer in self.idle:
            writer.close()
            await writer.wait_closed()

    async def __call__(self, order: Any) -> Enriched:
        """One order."""
        found = json.loads(await self.get(f"/customers/{order.customer}"))
        return Enriched(order.order, order.amount, found["name"], found["country"])

    async def get(self, path: str) -> bytes:
        """The body of an answer."""
        if not self.idle:
            self.idle.append(await asyncio.open_connection("127.0.0.1", self.port))
        reader, writer = self.idle.pop()
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            status, *headers = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            lengths = [line.split(":")[1] for line in headers if line.startswith("Content-Length:")]
            body = await reader.readexactly(int(lengths[0]))
        except BaseException:
            writer.close()  # cancelled or broken in the middle of an answer: of no use any more
            raise
        self.idle.append((reader, writer))
        if " 404 " in status:
            raise UnknownCustomer(path)
        if " 200 " not in status:
            raise ConnectionError(status)
        return body


def enrich(orders: hr.Stream, port: int) -> Any:
    """The orders with their customers; on `errors`, those that nobody knows."""
    return orders.map_async(
        Customers(port),
        capacity=50,
        timeout=timedelta(seconds=5),
        retry=hr.Retry(attempts=4, retry_on=(ConnectionError, TimeoutError)),
        on_error="dead_letter",
        uid="enrich",
    )


def make(start: int, end: int) -> pa.RecordBatch:
    """Orders `[start, end)`."""
    number = np.arange(start, end, dtype=np.int64)
    return pa.record_batch([number, number * 7919 % CUSTOMERS, number % 100 + 0.99], ORDERS)


class Service(BaseHTTPRequestHandler):
    """Who a customer is, after a while."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes out in one piece
    asked = 0
    turned_away: ClassVar[set[int]] = set()

    def do_GET(self) -> None:
        """Answer a request."""
        time.sleep(0.02)
        Service.asked += 1
        customer = int(self.path.rpartition("/")[2])
        if customer % 10 == 0 and customer not in Service.turned_away:
            Service.turned_away.add(customer)
            self._answer(503, {})
        elif customer < STRANGERS:
            self._answer(404, {})
        else:
            country = COUNTRIES[customer % len(COUNTRIES)]
            self._answer(200, {"name": f"customer {customer}", "country": country})

    def _answer(self, status: int, found: dict[str, str]) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


class Server(ThreadingHTTPServer):
    """Takes many connections at a time."""

    request_queue_size = 100
    daemon_threads = True


@contextmanager
def service() -> Iterator[int]:
    """The port of a service that runs in a thread."""
    server = Server(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Enrich, and print what came of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--orders", type=int, default=2_000)
    parser.add_argument("--local", action="store_true", help="in this process, without Spark")
    options = parser.parse_args()
    done, failed = memory.MemorySink(), memory.MemorySink()
    with tempfile.TemporaryDirectory(prefix="headrace-enrich-") as scratch, service() as port:
        env = hr.Environment("enrich", checkpoint=Path(scratch, "checkpoint"))
        orders = env.from_source(
            generator.Function(ORDERS, make, rows=options.orders), uid="orders"
        )
        enriched = enrich(orders, port)
        enriched.sink_to(done, uid="enriched")
        enriched.errors.sink_to(failed, uid="strangers")
        if options.local:
            testing.run_local(env)
        else:
            env.execute()
    rows, dead = done.to_pylist(), failed.to_pylist()
    for row in rows[:5]:
        print(f"order {row['order']:4}  {row['amount']:6.2f}  {row['name']}, {row['country']}")
    print(f"{len(rows):,} orders enriched, {len(dead)} of unknown customers", end="")
    print(f", {Service.asked:,} requests")


if __name__ == "__main__":
    main()
