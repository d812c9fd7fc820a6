"""The partitions of a source as a cluster has them: births, first and last offsets, and the spans that follow.

Every method asks the cluster and waits for its answer; `enumerator` calls them from its thread. What a birth says is
durable before a span tells of the partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.connectors.kafka.clients import LOG
from headrace.connectors.kafka.reading.birth import Birth, Births
from headrace.connectors.kafka.reading.cluster import Cluster, Gone, Topic
from headrace.connectors.kafka.reading.positions import (
    Start,
    Stop,
    TopicPartition,
    name_of,
    spelled,
)
from headrace.connectors.kafka.reading.ranges import OnLoss
from headrace.connectors.kafka.reading.resolution import births_of, stops_of
from headrace.connectors.kafka.reading.topic_choice import TopicChoice
from headrace.endpoints import Span
from headrace.errors import InputError

__all__ = ["Survey", "Watched"]

_DIP_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What a source watches."""

    choice: TopicChoice
    start: Start
    stop: Stop
    on_loss: OnLoss


class Survey:
    """What is known of the partitions. Used from one thread at a time."""

    def __init__(
        self,
        cluster: Cluster,
        watched: Watched,
        directory: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._watched = watched
        self._directory = directory
        self._clock = clock

        self._births = Births(spelled(watched.stop))
        self._firsts: Mapping[TopicPartition, int] = {}
        self._lasts: Mapping[TopicPartition, int] = {}
        #: Since when a partition ends before where it ended.
        self._since: Mapping[TopicPartition, float] = {}

    @property
    def resumes(self) -> bool:
        """Whether an earlier start has seen the partitions."""
        return Births.read(self._directory) is not None

    def begin(self) -> None:
        """The first look: partitions get their births, or those of an earlier start are read."""
        known = Births.read(self._directory)
        if known is None:
            self._be_born(self._topics())
        else:
            self._births = known
            topics = self._topics()
            self._check(topics)
            self._follow_stop(topics)
            self.grow()
        self.look_back()
        self.look_ahead()

    def grow(self) -> None:
        """Take in partitions that are new; they begin at their oldest record."""
        topics = self._topics()
        self._check(topics)
        # A bounded source was told where to end before these were there.
        if self._watched.stop is None and self._new(topics):
            self._keep(self._grown(topics))
            self.look_back()
            self.look_ahead()

    def recognise(self) -> None:
        """Raise unless the topics are the ones that the job began with: `InputError`, or `Gone` if one is away."""
        self._check(self._cluster.topics(self._births.topics))

    def look_back(self) -> None:
        """Learn where partitions begin now."""
        self._firsts = self._cluster.firsts(self._births.partitions)

    def look_ahead(self) -> None:
        """Learn where partitions end now."""
        lasts = self._cluster.lasts(self._births.partitions)
        behind = {key for key, last in lasts.items() if last < self._lasts.get(key, 0)}
        if behind:
            # Said before the planner finds that what was read is not there.
            self.recognise()
        self._lasts = {**lasts, **self._held(behind)}

    def _held(self, behind: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """A new leader may know less for a moment; only what stays away is taken for lost."""
        now = self._clock()
        self._since = {key: self._since.get(key, now) for key in behind}
        return {key: self._lasts[key] for key in behind if now - self._since[key] < _DIP_S}

    def spans(self) -> dict[str, Span]:
        """What each partition offers."""
        return {
            name_of(*key): self._span(key, birth)
            for key, birth in self._births.partitions.items()
            if key in self._lasts and key in self._firsts
        }

    def _span(self, key: TopicPartition, birth: Birth) -> Span:
        last = self._lasts[key]
        end = last if birth.stop is None else max(birth.begin, min(last, birth.stop))
        finished = birth.stop is not None and last >= birth.stop
        # Who may lose records reads on from where it was; the read finds the gap and tells of it.
        first = 0 if self._watched.on_loss == "skip" else min(self._firsts[key], end)
        return Span(first, end, finished, begin=birth.begin, firm=True)

    def _topics(self) -> dict[str, Topic]:
        """The topics that are meant, as they are now."""
        choice = self._watched.choice
        if choice.pattern is None:
            names = set(choice.names)
        else:
            names = choice.matching(self._cluster.names()) | set(self._births.topics)
        topics = self._cluster.topics(names)
        for name in sorted(names - set(topics)):
            raise Gone(name)
        if not topics and self._watched.stop is not None:
            raise InputError(f"no topic matches {choice}, so there is nothing to read")
        return topics

    def _be_born(self, topics: Mapping[str, Topic]) -> None:
        watched = self._watched
        births = births_of(
            self._cluster, _partitions(topics), watched.start, watched.stop, watched.on_loss
        )
        self._keep(Births(spelled(watched.stop), births, _ids(topics)))

    def _follow_stop(self, topics: Mapping[str, Topic]) -> None:
        """A job that is started again may be told to end elsewhere; partitions that are there by then are read to it."""
        if self._births.stop == spelled(self._watched.stop):
            return
        grown = self._grown(topics)
        lasts = self._cluster.lasts(grown.partitions)
        stops = stops_of(self._cluster, self._watched.stop, lasts)
        births = {
            key: replace(birth, stop=stops.get(key)) for key, birth in grown.partitions.items()
        }
        self._keep(replace(grown, stop=spelled(self._watched.stop), partitions=births))

    def _new(self, topics: Mapping[str, Topic]) -> list[TopicPartition]:
        return [key for key in _partitions(topics) if key not in self._births.partitions]

    def _grown(self, topics: Mapping[str, Topic]) -> Births:
        """The births with those of new partitions."""
        new = self._new(topics)
        births = {key: Birth(first) for key, first in self._cluster.firsts(new).items()}
        if new:
            LOG.info("new partitions are read: %s", ", ".join(name_of(*key) for key in sorted(new)))
        return self._births.with_partitions(births, _ids(topics))

    def _check(self, topics: Mapping[str, Topic]) -> None:
        for name in sorted(set(self._births.topics) - set(topics)):
            raise Gone(name)
        self._births.check_ids(_ids(topics))

    def _keep(self, births: Births) -> None:
        births.write(self._directory)
        self._births = births


def _partitions(topics: Mapping[str, Topic]) -> list[TopicPartition]:
    return [(topic.name, partition) for topic in topics.values() for partition in topic.partitions]


def _ids(topics: Mapping[str, Topic]) -> dict[str, str | None]:
    return {name: topic.id for name, topic in topics.items()}
