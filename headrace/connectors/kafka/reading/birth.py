"""Where each partition began, kept for ever: `<directory>/birth.json`.

"Latest" means another offset an hour later, so what the user said is made into offsets once and written down, durably
and with a checksum, before anybody is told of a partition. The ids of topics stand beside them: a topic that was
deleted and created again has the old name and another id, and its offsets mean other records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace._commit.files import make_directory, read_record, write_record
from headrace.connectors.kafka.reading.positions import TopicPartition, name_of, partition_of
from headrace.endpoints import Json
from headrace.errors import CheckpointDamaged, InputError

__all__ = ["Birth", "Births"]

_NAME = "birth.json"


@dataclass(frozen=True, slots=True)
class Birth:
    """Where a partition begins, and where it ends if the source is bounded."""

    begin: int
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Births:
    """The partitions of a source. `stop` is how the user spelled where it ends."""

    stop: str
    partitions: Mapping[TopicPartition, Birth] = field(default_factory=dict)
    topics: Mapping[str, str | None] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Births | None:
        """What an earlier start wrote; None at the first one."""
        path = directory / _NAME
        if not path.exists():
            return None
        body = read_record(path)
        try:
            return cls(body["stop"], _parsed(body["partitions"]), dict(body["topics"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointDamaged(f"{path} is not as it was written: {error!r}") from error

    def write(self, directory: Path) -> None:
        """Keep it, durably."""
        make_directory(directory)
        partitions: dict[str, Json] = {
            name_of(*key): {"begin": birth.begin, "stop": birth.stop}
            for key, birth in self.partitions.items()
        }
        body: dict[str, Json] = {
            "stop": self.stop,
            "partitions": partitions,
            "topics": dict(self.topics),
        }
        write_record(directory / _NAME, body)

    def with_partitions(
        self, partitions: Mapping[TopicPartition, Birth], topics: Mapping[str, str | None]
    ) -> Births:
        """These and more."""
        known = {name: topic_id for name, topic_id in self.topics.items() if topic_id is not None}
        return Births(
            self.stop, {**partitions, **self.partitions}, {**self.topics, **topics, **known}
        )

    def check_ids(self, topics: Mapping[str, str | None]) -> None:
        """Raise `InputError` if a topic is not the one that the job began with."""
        for name, topic_id in topics.items():
            known = self.topics.get(name)
            if known is not None and topic_id is not None and known != topic_id:
                raise InputError(
                    f"the topic {name!r} was deleted and created again since the job began (its id was"
                    f" {known} and is {topic_id}): offsets of the old topic mean nothing in the new one;"
                    " start with a new checkpoint"
                )


def _parsed(partitions: Mapping[str, Any]) -> dict[TopicPartition, Birth]:
    return {
        partition_of(name): Birth(int(birth["begin"]), birth["stop"])
        for name, birth in partitions.items()
    }
