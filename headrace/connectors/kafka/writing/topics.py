"""Topics: asked for, never made by accident, created if the user says so.

Asking a broker for the metadata of one topic may create it with settings that nobody chose; describing it does not.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from headrace.connectors.kafka.clients import Complaints, client_config, library, opened
from headrace.connectors.kafka.writing.failures import code_of, sink_failure
from headrace.errors import BuildError, SinkError, SinkRefused

__all__ = ["NewTopic", "Topics"]

_ANSWER_S = 10.0
_SECOND_LOOK_S = 0.5
#: A broker writes its marks behind a commit in milliseconds; who waits longer waits for somebody else's transaction.
_DECIDED_S = 3.0
_LIMIT = "max.message.bytes"


@dataclass(frozen=True, slots=True)
class NewTopic:
    """How a topic is created that does not exist yet.

    `replication` is the broker's own default unless it is given; `settings` are the topic's, such as
    `{"cleanup.policy": "compact"}`.
    """

    partitions: int = 1
    replication: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise BuildError(f"a topic has at least one partition, not {self.partitions}")
        if self.replication is not None and self.replication < 1:
            raise BuildError(f"a topic has at least one replica, not {self.replication}")


class Topics:
    """What a cluster says about topics; counts are asked for once and kept."""

    def __init__(self, bootstrap: str, options: Mapping[str, str]) -> None:
        self._bootstrap = bootstrap
        self._complaints = Complaints()
        self._admin: Any = opened(
            "admin.AdminClient", {**client_config(bootstrap, options), "error_cb": self._complaints}
        )
        self._counts: dict[str, int] = {}

    def partitions(self, topic: str, create: NewTopic | None = None) -> int:
        """How many partitions the topic has. One that is missing is created, or `SinkRefused`."""
        known = self._counts.get(topic)
        if known is None:
            known = self.count(topic) or self._created(topic, create)
            self._counts[topic] = known
        return known

    def forget(self) -> None:
        """Ask again the next time."""
        self._counts.clear()

    def count(self, topic: str) -> int | None:
        """How many partitions the topic has at this moment; None: there is no such topic."""
        collection = library().TopicCollection([topic])
        self._listen()
        try:
            asked = self._admin.describe_topics(collection, request_timeout=_ANSWER_S)
            return len(asked[topic].result(_ANSWER_S + 1).partitions)
        except (library().KafkaException, TimeoutError) as error:
            if code_of(error) == "UNKNOWN_TOPIC_OR_PART":
                return None
            raise self._failure(error, f"topic {topic!r} cannot be asked about") from error

    def largest_record(self, topic: str) -> int | None:
        """The topic's `max.message.bytes`; None if we may not know."""
        limit = self.setting(topic, _LIMIT)
        return None if limit is None else int(limit)

    def setting(self, topic: str, name: str) -> str | None:
        """What a setting of the topic is; None if we may not know."""
        admin = _admin_module()
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic)
        try:
            asked = self._admin.describe_configs([resource], request_timeout=_ANSWER_S)
            return str(asked[resource].result(_ANSWER_S + 1)[name].value)
        except (library().KafkaException, TimeoutError, KeyError):
            return None

    def await_decided(self, counts: Mapping[str, int]) -> None:
        """Wait a moment until no transaction is open in these topics, given with their partitions."""
        partitions = [(topic, at) for topic, count in counts.items() for at in range(count)]
        until = time.monotonic() + _DECIDED_S
        with contextlib.suppress(library().KafkaException, TimeoutError):
            levels = library().IsolationLevel
            ends = self._ends(partitions, levels.READ_UNCOMMITTED)
            while time.monotonic() < until:
                seen = self._ends(partitions, levels.READ_COMMITTED)
                if all(seen[key] >= end for key, end in ends.items()):
                    return
                time.sleep(0.02)

    def create(self, topic: str, wanted: NewTopic) -> None:
        """Create the topic; one that somebody else created meanwhile will do."""
        # -1 is the brokers' default. If they cannot have it now, fewer copies for ever are not ours to choose.
        replication = -1 if wanted.replication is None else wanted.replication
        request = _admin_module().NewTopic(
            topic, wanted.partitions, replication, config=dict(wanted.settings)
        )
        self._listen()
        try:
            asked = self._admin.create_topics([request], operation_timeout=_ANSWER_S)
            asked[topic].result(_ANSWER_S + 10)
        except (library().KafkaException, TimeoutError) as error:
            if code_of(error) == "TOPIC_ALREADY_EXISTS":
                return
            raise self._failure(error, f"topic {topic!r} cannot be created") from error

    def _ends(self, partitions: Sequence[tuple[str, int]], isolation: Any) -> dict[Any, int]:
        latest = _admin_module().OffsetSpec.latest()
        wanted = {library().TopicPartition(*key): latest for key in partitions}
        if not wanted:
            return {}
        asked = self._admin.list_offsets(
            wanted, isolation_level=isolation, request_timeout=_ANSWER_S
        )
        return {(key.topic, key.partition): one.result().offset for key, one in asked.items()}

    def _created(self, topic: str, create: NewTopic | None) -> int:
        if create is None:
            # A broker that has just started may not know all of its topics yet.
            time.sleep(_SECOND_LOOK_S)
            if (known := self.count(topic)) is not None:
                return known
            raise SinkRefused(
                f"there is no topic {topic!r} at {self._bootstrap}: create it, or let the sink do it with"
                " create=kafka.NewTopic(partitions=...)"
            )
        self.create(topic, create)
        # Perhaps it was there, with another number, and a broker may take a moment to know it: a guess would send
        # keys to other partitions than before.
        until = time.monotonic() + _ANSWER_S
        while (known := self.count(topic)) is None:
            if time.monotonic() > until:
                raise SinkError(
                    f"topic {topic!r} was made at {self._bootstrap} and is not known there yet"
                )
            time.sleep(_SECOND_LOOK_S)
        return known

    def _listen(self) -> None:
        """What was complained of while nobody asked anything says nothing about this question."""
        self._admin.poll(0)
        self._complaints.forget()

    def _failure(self, error: Exception, what: str) -> SinkError:
        self._admin.poll(0)
        return sink_failure(error, f"{what} at {self._bootstrap}", self._complaints)


def _admin_module() -> Any:
    return import_module("confluent_kafka.admin")
