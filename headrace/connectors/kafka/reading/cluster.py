"""What a source asks a cluster: topics and their ids, first and last offsets, offsets of groups.

One request for all partitions each. Nothing is kept between calls. The last offset is the last stable one for a
source that reads committed records only: behind it stand records of transactions that are still open.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headrace.connectors.kafka.clients import Complaints, library, opened
from headrace.connectors.kafka.reading.positions import TopicPartition

__all__ = ["Cluster", "Gone", "Topic"]

_GONE = frozenset(
    {"UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "UNKNOWN_TOPIC_ID"}
)
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"


class Gone(Exception):
    """A topic or partition that the cluster does not know (any more)."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is now. `id` changes if it is deleted and created again; old brokers have none."""

    name: str
    id: str | None
    partitions: tuple[int, ...]


class Cluster:
    """An administrator's connection. Used from one thread at a time."""

    def __init__(
        self, config: Mapping[str, Any], *, committed_only: bool, timeout_s: float
    ) -> None:
        self.complaints = Complaints()
        self._client = opened("admin.AdminClient", {**config, "error_cb": self.complaints})
        self._committed_only = committed_only
        self._timeout_s = timeout_s

    def names(self) -> list[str]:
        """All topics but the cluster's own."""
        found = self._client.list_topics(timeout=self._timeout_s).topics
        return sorted(name for name in found if not name.startswith("__"))

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """These topics; one that is not there is left out."""
        if not names:
            return {}
        asked = self._client.describe_topics(
            library().TopicCollection(sorted(names)), request_timeout=self._timeout_s
        )
        found = {}
        for name, future in asked.items():
            try:
                found[name] = _topic(future.result())
            except library().KafkaException as error:
                if error.args[0].name() not in _GONE:
                    raise
        return found

    def lasts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """One past the last record that may be read."""
        return self._offsets(partitions, _admin().OffsetSpec.latest())

    def firsts(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The oldest record."""
        return self._offsets(partitions, _admin().OffsetSpec.earliest())

    def at(self, partitions: Iterable[TopicPartition], moment_ms: int) -> dict[TopicPartition, int]:
        """The first record of that time or later; -1 where there is none."""
        return self._offsets(partitions, _admin().OffsetSpec.for_timestamp(moment_ms))

    def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        """What a group has committed; None where it has nothing."""
        known = library()
        request = known.ConsumerGroupTopicPartitions(
            group, [known.TopicPartition(*key) for key in partitions]
        )
        asked = self._client.list_consumer_group_offsets([request], request_timeout=self._timeout_s)
        return {
            (found.topic, found.partition): found.offset if found.offset >= 0 else None
            for found in asked[group].result().topic_partitions
        }

    def commit(self, group: str, positions: Mapping[TopicPartition, int]) -> None:
        """Commit for a group without being a member of it."""
        known = library()
        request = known.ConsumerGroupTopicPartitions(
            group, [known.TopicPartition(*key, offset) for key, offset in positions.items()]
        )
        asked = self._client.alter_consumer_group_offsets(
            [request], request_timeout=self._timeout_s
        )
        for found in asked[group].result().topic_partitions:
            if found.error is not None:
                raise known.KafkaException(found.error)

    def listen(self) -> None:
        """Let the library tell its complaints."""
        self._client.poll(0)

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: Any
    ) -> dict[TopicPartition, int]:
        known = library()
        wanted = {known.TopicPartition(*key): spec for key in partitions}
        if not wanted:
            return {}
        asked = self._client.list_offsets(
            wanted, isolation_level=self._isolation(), request_timeout=self._timeout_s
        )
        return {
            (key.topic, key.partition): _result(key.topic, future.result).offset
            for key, future in asked.items()
        }

    def _isolation(self) -> Any:
        levels = library().IsolationLevel
        return levels.READ_COMMITTED if self._committed_only else levels.READ_UNCOMMITTED


def _admin() -> Any:
    from confluent_kafka import admin

    return admin


def _topic(found: Any) -> Topic:
    topic_id = str(found.topic_id)
    return Topic(
        found.name,
        None if topic_id.startswith(_NO_ID) else topic_id,
        tuple(sorted(part.id for part in found.partitions)),
    )


def _result(topic: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except library().KafkaException as error:
        if error.args[0].name() in _GONE:
            raise Gone(topic) from error
        raise
