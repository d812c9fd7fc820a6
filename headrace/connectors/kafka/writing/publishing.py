"""Publishes the epochs of a Kafka sink: lanes side by side, here or on the workers.

A staged epoch is removed when the next one is published: by then it is noted that nobody will ask for it again. Until
then a crash may lead to the question which of its rows belong to which lane, and only the files know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from headrace._commit.spool import check_staged, discard_spool, read_spool, remove_spooled
from headrace.connectors.kafka.writing.lane import Lane, LaneSettings, opened_lane
from headrace.connectors.kafka.writing.records import Chunk, Routing, lane_chunks, lanes_with_rows
from headrace.connectors.kafka.writing.topics import Topics
from headrace.endpoints import DeliveryGuarantee, Publisher, Receipt, SinkContext
from headrace.errors import HeadraceError, SinkError

__all__ = ["KafkaPublisher", "LaneTask", "publish_lane"]

#: From here on the workers publish; below, starting tasks would take longer than the work.
_MANY_ROWS = 200_000
_MANY_BYTES = 64 << 20


@dataclass(frozen=True)
class LaneTask:
    """One lane's part of an epoch, for a worker."""

    settings: LaneSettings
    routing: Routing
    spool: Path
    epoch: int
    receipts: tuple[Receipt, ...]


class KafkaPublisher(Publisher):
    """The driver's side of a sink."""

    def __init__(
        self,
        context: SinkContext,
        lanes: Sequence[LaneSettings],
        topics: Topics,
        route: Callable[[Sequence[str]], Routing],
    ) -> None:
        self._context = context
        self._settings = tuple(lanes)
        self._topics = topics
        self._route = route
        self._lanes: tuple[Lane, ...] = tuple(opened_lane(one) for one in lanes)
        self._threads = ThreadPoolExecutor(len(lanes), f"headrace-kafka-{context.uid}")
        self._shown: int | None = None
        self._written: set[tuple[str, int]] = set()

    def publish(self, epoch: int, receipts: Sequence[Receipt]) -> None:
        """Show the epoch in every lane that has rows in it and has not shown it."""
        if self._shown is not None and self._shown < epoch:
            remove_spooled(self._context.spool, self._shown)
        ordered = tuple(sorted(receipts, key=lambda receipt: receipt.path))
        if ordered:
            routing = self._route(_topics_of(ordered))
            self._written.update(routing.counts.items())
            if self._is_large(ordered):
                self._spread(epoch, ordered, routing)
            else:
                self._publish_here(epoch, ordered, routing)
        self._shown = epoch

    def flush(self) -> None:
        """A job that has ended has its rows where readers see them, which is a moment behind the last commit."""
        if self._settings[0].guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            self._topics.await_decided(dict(self._written))

    def highest_seen(self) -> int | None:
        """The last epoch that any lane's marker names."""
        self._side_by_side(lambda lane: lane.open(), self._lanes)
        return max(
            (found for lane in self._lanes if (found := lane.highest()) is not None), default=None
        )

    def discard(self, keep: frozenset[int]) -> None:
        """Remove what was staged for other epochs."""
        discard_spool(self._context.spool, keep)

    def close(self) -> None:
        """Give the producers up."""
        self._threads.shutdown()
        for lane in self._lanes:
            lane.drop()

    def _is_large(self, receipts: Sequence[Receipt]) -> bool:
        if self._context.spread is None:
            return False
        rows = sum(receipt.rows for receipt in receipts)
        return rows > _MANY_ROWS or sum(receipt.size for receipt in receipts) > _MANY_BYTES

    def _publish_here(self, epoch: int, receipts: Sequence[Receipt], routing: Routing) -> None:
        tables = [read_spool(self._context.spool, receipt) for receipt in receipts]
        present = lanes_with_rows(tables, routing)

        def publish(lane: tuple[int, Lane]) -> None:
            lane[1].publish(epoch, lambda: lane_chunks(tables, routing, lane[0]))

        self._side_by_side(publish, [(at, self._lanes[at]) for at in sorted(present)])

    def _spread(self, epoch: int, receipts: tuple[Receipt, ...], routing: Routing) -> None:
        """Have the workers do it. They take the lanes over, so ours are given up first."""
        spool = self._context.spool
        for receipt in receipts:
            # Before anything is shown: each lane would find out for itself, when others are done.
            check_staged(spool / receipt.path, size=receipt.size, crc=receipt.crc)
        for lane in self._lanes:
            lane.drop()
        assert self._context.spread is not None
        tasks = [LaneTask(one, routing, spool, epoch, receipts) for one in self._settings]
        failures = self._context.spread(publish_lane, tasks)
        self._raise_first([failure for failure in failures if failure is not None])

    def _side_by_side(self, action: Callable[..., None], arguments: Sequence[object]) -> None:
        futures = [self._threads.submit(action, argument) for argument in arguments]
        errors = [error for future in futures if (error := future.exception()) is not None]
        self._raise_first(errors)

    def _raise_first(self, errors: Sequence[BaseException]) -> None:
        """The error that ends publication, if there is one; else the first."""
        if not errors:
            return
        final = [
            error for error in errors if not isinstance(error, SinkError) or not error.retryable
        ]
        error = final[0] if final else errors[0]
        # A topic may be gone, or be another one with other numbers: the next attempt finds out.
        self._topics.forget()
        raise error


#: The lanes that this worker process has taken over, by their names and this start's number.
_TAKEN: dict[tuple[str, int], Lane] = {}


def publish_lane(task: LaneTask) -> HeadraceError | None:
    """Publish one lane's part of an epoch in a worker. What went wrong is returned: a retry is the committer's."""
    try:
        if next(_chunks(task), None) is not None:
            _taken(task.settings).publish(task.epoch, lambda: _chunks(task))
    except HeadraceError as error:
        return _bare(error)
    return None


def _taken(settings: LaneSettings) -> Lane:
    key = settings.name, settings.identity.fence
    lane = _TAKEN.get(key)
    if lane is None:
        for stale in [known for known in _TAKEN if known[0] == settings.name]:
            _TAKEN.pop(stale).drop()
        lane = _TAKEN[key] = opened_lane(settings)
    return lane


def _chunks(task: LaneTask) -> Iterator[Chunk]:
    """The lane's rows, one staged file in memory at a time."""
    tables = (read_spool(task.spool, receipt) for receipt in task.receipts)
    return lane_chunks(tables, task.routing, task.settings.identity.lane)


def _bare(error: HeadraceError) -> HeadraceError:
    """The error without what it came from: the library's own errors do not travel."""
    return type(error)(str(error))


def _topics_of(receipts: Sequence[Receipt]) -> list[str]:
    """The topics that rows name, where they do."""
    found: set[str] = set()
    for receipt in receipts:
        topics = receipt.details.get("topics", ())
        assert isinstance(topics, Sequence)
        found.update(str(topic) for topic in topics)
    return sorted(found)
