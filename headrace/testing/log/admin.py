"""The log's administrator: topics and their ids, settings, offsets, offsets of groups. Answers are futures that are done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeVar

from headrace.connectors.kafka.clients import library
from headrace.testing.log.broker import Broker, Place
from headrace.testing.log.faults import Request, failure

__all__ = ["AdminClient"]

_NO_OFFSET = -1001
#: The broker's own.
_DEFAULTS = {"cleanup.policy": "delete", "max.message.bytes": "1048588"}
_SIGNED = 1 << 64
_Answer = TypeVar("_Answer")


class AdminClient:
    """A `confluent_kafka.admin.AdminClient` of a log, as far as the source and the sink call it."""

    def __init__(self, broker: Broker, config: Mapping[str, Any]) -> None:
        self._broker = broker
        self._complain: Callable[[Any], None] = config.get("error_cb", lambda _: None)

    def poll(self, _timeout: float) -> int:
        """Complaints were reported at once."""
        return 0

    def list_topics(self, timeout: float) -> Any:
        """All topics, by name."""
        return self._ask("topics", lambda: SimpleNamespace(topics=dict(self._broker.topics)))

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        """Ids and partitions."""
        return {name: self._answer("topics", self._described, name) for name in topics.topic_names}

    def describe_configs(
        self,
        resources: Sequence[Any],
        request_timeout: float,
    ) -> dict[Any, Future[Any]]:
        """Settings of topics."""
        return {one: self._answer("topics", self._settings, one.name) for one in resources}

    def create_topics(
        self,
        topics: Sequence[Any],
        operation_timeout: float,
    ) -> dict[str, Future[Any]]:
        """Make topics."""
        return {one.topic: self._answer("create", self._create, one) for one in topics}

    def list_offsets(
        self,
        wanted: Mapping[Any, Any],
        isolation_level: Any,
        request_timeout: float,
    ) -> dict[Any, Future[Any]]:
        """Offsets of partitions: the oldest, the last that may be read, or the first of a time."""
        committed_only = isolation_level is library().IsolationLevel.READ_COMMITTED

        def found(asked: tuple[Place, Any]) -> Any:
            place, spec = asked
            return SimpleNamespace(offset=self._offset(place, spec, committed_only=committed_only))

        return {
            one: self._answer("offsets", found, ((one.topic, one.partition), spec))
            for one, spec in wanted.items()
        }

    def list_consumer_group_offsets(
        self,
        groups: Sequence[Any],
        request_timeout: float,
    ) -> dict[str, Future[Any]]:
        """What groups have committed."""
        return {one.group_id: self._answer("groups", self._committed, one) for one in groups}

    def alter_consumer_group_offsets(
        self,
        groups: Sequence[Any],
        request_timeout: float,
    ) -> dict[str, Future[Any]]:
        """Commit for groups."""
        return {one.group_id: self._answer("groups", self._commit, one) for one in groups}

    def _described(self, name: str) -> Any:
        topic = self._broker.topics.get(name)
        if topic is None:
            raise failure("UNKNOWN_TOPIC_OR_PART")
        high, low = divmod(topic.id.int, _SIGNED)
        half = _SIGNED >> 1
        identity = library().Uuid((high ^ half) - half, (low ^ half) - half)
        partitions = [SimpleNamespace(id=number) for number in range(len(topic.partitions))]
        return SimpleNamespace(name=name, topic_id=identity, partitions=partitions)

    def _settings(self, name: str) -> Any:
        topic = self._broker.topics.get(name)
        if topic is None:
            raise failure("UNKNOWN_TOPIC_OR_PART")
        settings = {**_DEFAULTS, **topic.settings}
        return {key: SimpleNamespace(value=value) for key, value in settings.items()}

    def _create(self, wanted: Any) -> None:
        self._broker.create(
            wanted.topic, wanted.num_partitions, wanted.config or {}, wanted.replication_factor
        )

    def _offset(self, place: Place, spec: Any, *, committed_only: bool) -> int:
        try:
            partition = self._broker.partition(place)
        except library().KafkaException:
            raise failure("_NOENT", "Failed to query partition leaders: No leaders found") from None
        specs = import_module("confluent_kafka.admin").OffsetSpec
        if spec is specs.earliest():
            return partition.first
        if spec is not specs.latest():
            return partition.since(spec.timestamp)
        limit = partition.limit(committed_only=committed_only)
        self._broker.waited(place)
        return limit

    def _committed(self, asked: Any) -> Any:
        known = self._broker.groups.get(asked.group_id, {})
        return SimpleNamespace(
            topic_partitions=[
                library().TopicPartition(
                    one.topic, one.partition, known.get((one.topic, one.partition), _NO_OFFSET)
                )
                for one in asked.topic_partitions
            ]
        )

    def _commit(self, asked: Any) -> Any:
        known = self._broker.groups.setdefault(asked.group_id, {})
        known.update({(one.topic, one.partition): one.offset for one in asked.topic_partitions})
        return SimpleNamespace(topic_partitions=asked.topic_partitions)

    def _answer(
        self, request: Request, action: Callable[[Any], _Answer], asked: Any
    ) -> Future[_Answer]:
        future: Future[_Answer] = Future()
        try:
            future.set_result(self._ask(request, lambda: action(asked)))
        except library().KafkaException as error:
            future.set_exception(error)
        return future

    def _ask(self, request: Request, action: Callable[[], _Answer]) -> _Answer:
        if self._broker.away:
            self._complain(failure("_TRANSPORT", "Connection refused").args[0])
        return self._broker.ask(request, action)
