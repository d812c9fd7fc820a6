"""A lane: the part of a sink that publishes in transactions of its own, one after the other.

A lane that is opened first ends what was in flight under its name (`init_transactions`, which also fences whoever
had it before), then reads its marker, then decides. Whatever goes wrong later, it gives its producer up and is
opened anew: it never goes on as if a transaction were committed whose outcome it does not know.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headrace.connectors.kafka.clients import LOG, client_config, library
from headrace.connectors.kafka.writing.failures import is_abortable, is_fenced, sink_failure
from headrace.connectors.kafka.writing.markers import Marker, MarkerPlace, read_marker
from headrace.connectors.kafka.writing.records import Chunk
from headrace.connectors.kafka.writing.sender import Sender
from headrace.endpoints import DeliveryGuarantee
from headrace.errors import SinkError, SinkRefused

__all__ = ["Lane", "LaneSettings", "PlainLane", "TransactionalLane", "opened_lane"]


#: How long a broker is waited for before the committer is told; it asks again.
_PATIENCE_S = 30.0
#: The same where nothing is promised: rows are given up then, and the epochs behind must not wait for long.
_NO_PROMISE_S = 5.0
_ABORT_S = 5.0


@dataclass(frozen=True)
class LaneSettings:
    """All that a lane needs, wherever it runs. Secrets are references until a client is opened."""

    bootstrap: str
    options: Mapping[str, str] = field(repr=False)
    guarantee: DeliveryGuarantee
    #: Who we are: nothing published yet, this start's fence.
    identity: Marker
    control_topic: str
    control_partition: int
    transaction_timeout_ms: int
    largest_record: int | None = None
    patience_s: float = field(default_factory=lambda: _PATIENCE_S)

    @property
    def name(self) -> str:
        """The same at every start, in whatever process: this is what fences a zombie."""
        return f"headrace-{self.identity.incarnation}-{self.identity.sink}-{self.identity.lane}"

    @property
    def place(self) -> MarkerPlace:
        """Where our marker is."""
        return MarkerPlace(self.control_topic, self.control_partition, self.identity.key)

    def config(self) -> dict[str, Any]:
        """The producer's configuration, without what the guarantee asks for."""
        limit = {} if self.largest_record is None else {"message.max.bytes": self.largest_record}
        return {**limit, **client_config(self.bootstrap, self.options)}


class Lane(ABC):
    """What the two kinds have in common."""

    def __init__(self, settings: LaneSettings) -> None:
        self._settings = settings
        self._sender: Sender | None = None

    @abstractmethod
    def publish(self, epoch: int, chunks: Callable[[], Iterable[Chunk]]) -> None:
        """Show rows; in order of epochs. `chunks` is called for each attempt."""

    def open(self) -> None:
        """Learn what is published."""

    def highest(self) -> int | None:
        """The last epoch that is known to be visible."""
        return None

    def drop(self) -> None:
        """Give the producer up; the next call opens another."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.drop()


class TransactionalLane(Lane):
    """Exactly once."""

    def __init__(self, settings: LaneSettings) -> None:
        super().__init__(settings)
        self._marker = settings.identity

    def highest(self) -> int | None:
        """As the marker says; None before the first."""
        return None if self._marker.epoch < 0 else self._marker.epoch

    def open(self) -> None:
        """Fence others, end what was in flight, read the marker; nothing to do if that was done."""
        if self._sender is None:
            self._guarded(self._take_over, "cannot be taken over")

    def publish(self, epoch: int, chunks: Callable[[], Iterable[Chunk]]) -> None:
        """One transaction: the rows, then the marker."""
        try:
            self._publish(epoch, chunks)
        except SinkError as error:
            # Another process of this run had the lane in between, or another start has: the marker says which.
            if not is_fenced(error.__cause__):
                raise
            self._publish(epoch, chunks)

    def _publish(self, epoch: int, chunks: Callable[[], Iterable[Chunk]]) -> None:
        self.open()
        if self._marker.epoch >= epoch:
            return
        marker = replace(self._settings.identity, epoch=epoch)
        self._guarded(lambda: self._transact(marker, chunks()), f"cannot publish epoch {epoch}")

    def _take_over(self) -> None:
        sender = self._sender = Sender(self._config(), self._settings.patience_s)
        sender.producer.init_transactions(self._settings.patience_s)
        found = self._read_marker()
        ours = self._settings.identity
        if found is not None and found.fence > ours.fence:
            raise SinkRefused(
                f"start {found.fence} of this job has taken sink {ours.sink!r} over; this is start {ours.fence},"
                " and it publishes nothing more"
            )
        if found is not None and found.lanes != ours.lanes:
            raise SinkRefused(
                f"sink {ours.sink!r} was begun with {found.lanes} lanes and has {ours.lanes} now, so rows would go to"
                " others than before: put lanes.json back beside the spool, or begin with a new checkpoint"
            )
        self._marker = found or ours
        if found is None or found.fence < ours.fence:
            # From now on an earlier start that takes the lane back sees that it is not its own any more.
            self._transact(replace(ours, epoch=self._marker.epoch), ())

    def _read_marker(self) -> Marker | None:
        settings = self._settings
        return read_marker(
            settings.bootstrap, settings.options, settings.place, settings.patience_s
        )

    def _transact(self, marker: Marker, chunks: Iterable[Chunk]) -> None:
        sender = self._sender
        assert sender is not None
        sender.producer.begin_transaction()
        sender.send(chunks)
        place = self._settings.place
        sender.send_one(place.topic, place.partition, place.key, marker.to_bytes())
        sender.flush()
        self._commit(sender)
        self._marker = marker

    def _commit(self, sender: Sender) -> None:
        sender.producer.commit_transaction(self._settings.patience_s)

    def _guarded(self, action: Any, what: str) -> None:
        """Do it; if that fails in any way, give the producer up."""
        try:
            action()
        except library().KafkaException as error:
            sender = self._sender
            text = f"lane {self._settings.identity.lane} of sink {self._settings.identity.sink!r} {what}"
            failure = sink_failure(error, text) if sender is None else sender.failure(error, text)
            self._end(error)
            raise failure from error
        except BaseException as error:
            self._end(error)
            raise

    def _end(self, error: BaseException) -> None:
        """End the transaction at once if the broker listens, so that readers need not wait for a timeout."""
        if self._sender is not None and is_abortable(error):
            with contextlib.suppress(library().KafkaException):
                self._sender.producer.abort_transaction(_ABORT_S)
        self.drop()

    def _config(self) -> dict[str, Any]:
        timeout_ms = self._settings.transaction_timeout_ms
        return {
            "message.timeout.ms": timeout_ms,
            **self._settings.config(),
            "transactional.id": self._settings.name,
            "transaction.timeout.ms": timeout_ms,
        }


class PlainLane(Lane):
    """At least once (rows are acknowledged before the epoch counts as published), or with no promise at all."""

    def publish(self, epoch: int, chunks: Callable[[], Iterable[Chunk]]) -> None:
        """Send, and wait for the brokers' word where that was promised."""
        if self._settings.guarantee is DeliveryGuarantee.AT_LEAST_ONCE:
            self._send(epoch, chunks())
            return
        # Whatever is lost was not promised; a broker that is away must not stop the job.
        try:
            self._send(epoch, chunks())
        except SinkError as error:
            LOG.warning("rows of epoch %d are given up: %s", epoch, error)

    def _send(self, epoch: int, chunks: Iterable[Chunk]) -> None:
        if self._sender is None:
            self._sender = Sender(self._config(), self._patience_s())
        sender = self._sender
        try:
            sender.send(chunks)
            sender.flush()
        except library().KafkaException as error:
            what = f"sink {self._settings.identity.sink!r} cannot publish epoch {epoch}"
            failure = sender.failure(error, what)
            self.drop()
            raise failure from error
        except BaseException:
            self.drop()
            raise

    def _patience_s(self) -> float:
        if self._settings.guarantee is DeliveryGuarantee.NONE:
            return min(_NO_PROMISE_S, self._settings.patience_s)
        return self._settings.patience_s

    def _config(self) -> dict[str, Any]:
        safe = self._settings.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
        return {"enable.idempotence": safe, **self._settings.config()}


def opened_lane(settings: LaneSettings) -> Lane:
    """The lane that the guarantee asks for."""
    if settings.guarantee is DeliveryGuarantee.EXACTLY_ONCE:
        return TransactionalLane(settings)
    return PlainLane(settings)
