"""What the user said about start and stop, as offsets of the partitions that there are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from headrace.connectors.kafka.clients import LOG
from headrace.connectors.kafka.reading.birth import Birth
from headrace.connectors.kafka.reading.cluster import Cluster
from headrace.connectors.kafka.reading.positions import (
    Committed,
    Start,
    Stop,
    TopicPartition,
    millis,
    name_of,
)
from headrace.connectors.kafka.reading.ranges import OnLoss
from headrace.errors import InputError

__all__ = ["births_of", "stops_of"]

Offsets = Mapping[TopicPartition, int]


def births_of(
    cluster: Cluster,
    partitions: Collection[TopicPartition],
    start: Start,
    stop: Stop,
    on_loss: OnLoss,
) -> dict[TopicPartition, Birth]:
    """Where each partition begins and ends; `InputError` if it cannot."""
    firsts, lasts = cluster.firsts(partitions), cluster.lasts(partitions)
    begins = _begins(cluster, start, firsts, lasts)
    stops = stops_of(cluster, stop, lasts)
    return {
        key: Birth(_within(key, begin, firsts[key], lasts[key], on_loss), stops.get(key))
        for key, begin in begins.items()
    }


def stops_of(cluster: Cluster, stop: Stop, lasts: Offsets) -> dict[TopicPartition, int]:
    """Where each partition ends; empty if it does not."""
    if stop is None:
        return {}
    if stop == "latest":
        return dict(lasts)
    if isinstance(stop, datetime):
        return _at(cluster, stop, lasts)
    _check_known("stop", stop, lasts)
    missing = sorted(name_of(*key) for key in lasts if key not in stop)
    if missing:
        raise InputError(
            f"stop= has no offset for {', '.join(missing)}: without one the job would never end"
        )
    return dict(stop)


def _begins(cluster: Cluster, start: Start, firsts: Offsets, lasts: Offsets) -> Offsets:
    if start == "earliest":
        return firsts
    if start == "latest":
        return lasts
    if isinstance(start, datetime):
        return _at(cluster, start, lasts)
    if isinstance(start, Committed):
        return _committed(cluster, start, firsts, lasts)
    _check_known("start", start, lasts)
    return {**firsts, **start}


def _at(cluster: Cluster, moment: datetime, lasts: Offsets) -> dict[TopicPartition, int]:
    """The first record of that time or later; without one, as of a time in the future, the end as it is now."""
    found = cluster.at(lasts, millis(moment))
    return {key: last if found[key] < 0 else min(found[key], last) for key, last in lasts.items()}


def _committed(cluster: Cluster, start: Committed, firsts: Offsets, lasts: Offsets) -> Offsets:
    found = cluster.committed(start.group, lasts)
    missing = sorted(name_of(*key) for key in lasts if found.get(key) is None)
    if missing and start.otherwise == "fail":
        raise InputError(
            f"the group {start.group!r} has committed nothing for {', '.join(missing)};"
            ' otherwise="earliest" or "latest" says where to begin then'
        )
    begins = dict(lasts if start.otherwise == "latest" else firsts)
    begins.update((key, offset) for key, offset in found.items() if offset is not None)
    return begins


def _check_known(option: str, given: Offsets, lasts: Offsets) -> None:
    for key in given:
        if key not in lasts:
            raise InputError(
                f"{option}= has an offset for {name_of(*key)}, which does not exist or is not read here"
            )


def _within(key: TopicPartition, begin: int, first: int, last: int, on_loss: OnLoss) -> int:
    if begin > last:
        raise InputError(
            f"{name_of(*key)} ends at {last}, but start= says {begin}: there is no such offset yet"
        )
    if begin >= first:
        return begin
    lost = f"{name_of(*key)}: the offsets {begin} to {first - 1}, where start= begins, are gone"
    if on_loss == "fail":
        raise InputError(f'{lost}; on_data_loss="skip" begins at {first}')
    LOG.warning("%s; they are skipped, as on_data_loss says", lost)
    return first
