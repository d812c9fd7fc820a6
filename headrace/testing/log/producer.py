"""The log's producer: a queue, a transaction, and reports of what was not delivered.

A record waits in the queue until it has to leave, in `flush`, in `commit_transaction` or when the caller polls with time
to spare, so a caller that does not wait for its rows is found out. What would end by a timeout ends at once.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from headrace.connectors.kafka.clients import library
from headrace.testing.log.broker import Broker, Place
from headrace.testing.log.faults import Killed, Request, failure
from headrace.testing.log.partition import Content, Header, Outcome

__all__ = ["Producer"]

_State = Literal["Plain", "Init", "Ready", "InTransaction"]
_Answer = TypeVar("_Answer")


class Producer:
    """A `confluent_kafka.Producer` of a log, as far as the sink calls it."""

    def __init__(self, broker: Broker, config: Mapping[str, Any]) -> None:
        self._broker = broker
        self._generation = broker.generation
        self._name: str | None = config.get("transactional.id")
        self._delivered: Callable[[Any, Any], None] = config.get("on_delivery", lambda *_: None)
        self._complain: Callable[[Any], None] = config.get("error_cb", lambda _: None)
        self._most = int(config.get("queue.buffering.max.messages", 100_000))
        self._largest = int(config.get("message.max.bytes", 1_000_000))
        self._epoch = -1
        self._state: _State = "Plain" if self._name is None else "Init"
        self._queue: deque[tuple[Place, Content]] = deque()
        #: The transaction has reached a partition; some of it was not delivered.
        self._wrote, self._lost = False, 0
        #: Topics whose partitions it knows.
        self._known: set[str] = set()
        self._fatal: Exception | None = None

    def __len__(self) -> int:
        return len(self._queue)

    def init_transactions(self, _timeout: float) -> None:
        """Take the transactional id over."""
        self._expect("Init")
        self._epoch = self._ask("init", lambda: self._broker.take_over(self._name or ""))
        self._state = "Ready"

    def begin_transaction(self) -> None:
        """What is produced from now on belongs together."""
        self._expect("Ready")
        self._state, self._wrote, self._lost = "InTransaction", False, 0

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int = 0,
        headers: Sequence[Header] | None = None,
    ) -> None:
        """Put a record into the queue."""
        self._check_alive()
        if self._fatal is not None:
            raise failure("_FATAL", "Unable to produce message: Local: Fatal error")
        if self._state not in {"Plain", "InTransaction"}:
            raise failure("_STATE", "Unable to produce message: Local: Erroneous state")
        if len(value or b"") + len(key or b"") > self._largest:
            words = "Unable to produce message: Broker: Message size too large"
            raise failure("MSG_SIZE_TOO_LARGE", words)
        if topic in self._known:
            self._broker.partition((topic, partition))
        if len(self._queue) >= self._most:
            raise BufferError("Local: Queue full")
        at_ms = timestamp or time.time_ns() // 1_000_000
        self._queue.append(((topic, partition), Content(value, key, headers or None, at_ms)))

    def poll(self, timeout: float) -> int:
        """Deliver, if there is time for it."""
        return self.flush(timeout) if timeout else 0

    def flush(self, _timeout: float) -> int:
        """Deliver all that waits; how much is left."""
        try:
            self._deliver()
        except library().KafkaException as error:
            # The library calls back for each record with its fatal error still raised.
            raise SystemError("returned a result with an exception set") from error
        return 0

    def commit_transaction(self, _timeout: float) -> None:
        """Deliver what waits, then show it all."""
        self._expect("InTransaction")
        self._deliver()
        if self._lost:
            raise failure("_INCONSISTENT", f"{self._lost} message(s) failed delivery")
        self._end("commit")

    def abort_transaction(self, _timeout: float) -> None:
        """Show nothing of it."""
        self._expect("InTransaction")
        self._queue.clear()
        self._end("abort")

    def purge(self) -> None:
        """Forget what waits. A transaction that is open stays so."""
        self._queue.clear()

    def _end(self, request: Literal["commit", "abort"]) -> None:
        """A transaction that wrote nothing is not known to the brokers."""
        name = self._name or ""
        outcome: Outcome = "committed" if request == "commit" else "aborted"
        if self._wrote:
            self._ask(request, lambda: self._broker.end(name, self._epoch, outcome))
        self._state = "Ready"

    def _deliver(self) -> None:
        """Stops at a fatal error alone; others are reported for their record."""
        while self._queue:
            place, content = self._queue.popleft()
            try:
                self._append(place, content)
            except library().KafkaException as error:
                if error.args[0].fatal():
                    self._queue.clear()
                    raise
                self._report(error.args[0], place, content)

    def _append(self, place: Place, content: Content) -> None:
        def append() -> None:
            self._broker.append(place, content, self._name, self._epoch)
            self._known.add(place[0])
            self._wrote = True

        self._ask("append", append)

    def _report(self, error: Any, place: Place, content: Content) -> None:
        self._lost += 1
        if error.name() == "_TIMED_OUT":
            error = failure("_MSG_TIMED_OUT").args[0]
        message = library().Message(*place, key=content.key, value=content.value, error=error)
        self._delivered(error, message)

    def _ask(self, request: Request, action: Callable[[], _Answer]) -> _Answer:
        self._check_alive()
        try:
            return self._broker.ask(request, action)
        except library().KafkaException as error:
            if error.args[0].fatal():
                self._fatal = error
            elif self._broker.away:
                self._complain(failure("_TRANSPORT", "Connection refused").args[0])
            raise

    def _expect(self, state: _State) -> None:
        self._check_alive()
        if self._fatal is not None:
            raise self._fatal
        if self._state != state:
            raise failure("_STATE", f"Operation not valid in state {self._state}")

    def _check_alive(self) -> None:
        if self._generation != self._broker.generation:
            raise Killed("this producer was killed")
