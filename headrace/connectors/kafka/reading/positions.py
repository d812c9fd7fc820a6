"""Where a Kafka source begins and ends to read, as users say it.

    start="earliest" | "latest" | datetime | {("orders", 0): 17} | Committed("group")
    stop=None | "latest" | datetime | {("orders", 0): 99}

They are made into offsets once, at the first start of a job; `birth` keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias, get_args

from headrace.errors import BuildError

__all__ = [
    "Committed",
    "Otherwise",
    "Start",
    "Stop",
    "TopicPartition",
    "check_start",
    "check_stop",
    "millis",
    "name_of",
    "partition_of",
    "spelled",
]

Otherwise = Literal["earliest", "latest", "fail"]
#: Topic and partition.
TopicPartition: TypeAlias = tuple[str, int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Committed:
    """Begin at the offsets that a consumer group has committed; `otherwise` is for partitions where it has none.

    KafkaSource(..., start=Committed("billing", otherwise="earliest"))
    """

    group: str
    otherwise: Otherwise = "earliest"

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not self.group:
            raise BuildError(f"Committed takes the name of a consumer group, not {self.group!r}")
        if self.otherwise not in get_args(Otherwise):
            raise BuildError(
                f"otherwise must be 'earliest', 'latest' or 'fail', not {self.otherwise!r}"
            )


Given: TypeAlias = Mapping[TopicPartition, int]
Start: TypeAlias = 'Literal["earliest", "latest"] | datetime | Given | Committed'
Stop: TypeAlias = 'Literal["latest"] | datetime | Given | None'


def check_start(start: object) -> Start:
    """Where to begin, or `BuildError`."""
    if start == "earliest" or isinstance(start, Committed):
        return start
    return _checked("start", start, "'earliest', 'latest', a datetime, offsets or Committed(...)")


def check_stop(stop: object) -> Stop:
    """Where to end, or `BuildError`."""
    if stop is None:
        return None
    return _checked("stop", stop, "None, 'latest', a datetime or offsets")


def millis(moment: datetime) -> int:
    """The moment as Kafka counts: the first millisecond that is not before it."""
    return -((_EPOCH - moment) // timedelta(milliseconds=1))


def name_of(topic: str, partition: int) -> str:
    """What the engine calls a partition: `orders-3`."""
    return f"{topic}-{partition}"


def partition_of(name: str) -> TopicPartition:
    """The topic and partition behind a name."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def spelled(place: Start | Stop) -> str:
    """A start or stop as text that is the same for the same place."""
    if isinstance(place, datetime):
        return place.astimezone(UTC).isoformat()
    if isinstance(place, Mapping):
        return ", ".join(f"{name_of(*key)}: {offset}" for key, offset in sorted(place.items()))
    return str(place)


def _checked(option: str, place: object, choices: str) -> Literal["latest"] | datetime | Given:
    if place == "latest":
        return "latest"
    if isinstance(place, datetime):
        if place.utcoffset() is None:
            raise BuildError(
                f"{option} must be a datetime with a time zone, not {place!r}; add tzinfo=UTC"
            )
        return place
    if isinstance(place, Mapping) and place:
        return {_key(option, key): _offset(option, offset) for key, offset in place.items()}
    raise BuildError(f"{option} must be {choices}, not {place!r}")


def _key(option: str, key: object) -> TopicPartition:
    if not isinstance(key, tuple) or len(key) != 2:
        raise BuildError(f'{option} has offsets by ("topic", partition), not by {key!r}')
    topic, partition = key
    if not isinstance(topic, str) or isinstance(partition, bool) or not isinstance(partition, int):
        raise BuildError(f'{option} has offsets by ("topic", partition), not by {key!r}')
    return topic, partition


def _offset(option: str, offset: object) -> int:
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise BuildError(f"{option} has offsets of 0 or more, not {offset!r}")
    return offset
