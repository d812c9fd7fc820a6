"""The commit protocol as a decision: facts in, actions out. No I/O, so every crash is a row in a table.

An epoch N passes these states, each entered by one durable write:

    planned (offsets/N) -> staged -> recorded (manifest N) -> durable (commits/N) -> published -> settled

A crash leaves N in one of them. What is durable will be published; what is not is run again, so all that
it left behind goes. Publishing twice is harmless by the publishers' contract, publishing what is not
durable would be for ever wrong: if that is what the facts say, the only action is to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "Action",
    "DiscardStaged",
    "DropManifest",
    "Publish",
    "RecordShown",
    "RecoveryFacts",
    "Refuse",
    "decide",
    "oldest_kept",
    "retire",
]

#: Manifests that are kept behind the last one needed, for those who look into what went wrong.
KEPT_MANIFESTS = 8


@dataclass(frozen=True, kw_only=True)
class RecoveryFacts:
    """What a start finds. -1 stands for "none yet" in epochs."""

    sinks: tuple[str, ...]
    #: Epochs in Spark's logs, as far as they are not purged.
    offsets: tuple[int, ...] = ()
    commits: tuple[int, ...] = ()
    #: Epoch -> fences, ascending.
    manifests: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    #: `published.json`, by sink.
    shown: Mapping[str, int] = field(default_factory=dict)
    settled: Mapping[str, int] = field(default_factory=dict)
    #: What the systems outside say that they show, where they record it.
    outside: Mapping[str, int | None] = field(default_factory=dict)
    #: The last epoch of which anything is visible there, half an epoch too.
    seen: Mapping[str, int | None] = field(default_factory=dict)
    #: The last durable epoch that `published.json` knew of.
    known_durable: int = -1
    #: Sentences about files that do not match the checksum written down for them.
    altered: tuple[str, ...] = ()

    @property
    def durable(self) -> int:
        """The highest commit; lower ones are durable too, purged or not."""
        return max(self.commits, default=-1)


@dataclass(frozen=True, slots=True)
class Publish:
    """Show what the manifest of an epoch lists for a sink."""

    epoch: int
    sink: str


@dataclass(frozen=True, slots=True)
class RecordShown:
    """The sink shows this epoch already; only the note of it is missing."""

    epoch: int
    sink: str


@dataclass(frozen=True, slots=True)
class DiscardStaged:
    """Remove what was staged for a sink in epochs other than these."""

    sink: str
    keep: frozenset[int]


@dataclass(frozen=True, slots=True)
class DropManifest:
    """Remove a manifest whose epoch never became durable, or that nobody needs."""

    epoch: int
    fence: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do nothing: going on could lose or double rows."""

    reason: str


Action: TypeAlias = Publish | RecordShown | DiscardStaged | DropManifest | Refuse


def decide(facts: RecoveryFacts) -> list[Action]:
    """What a start must do before the first epoch runs, in this order."""
    reason = next(_objections(facts), None)
    if reason is not None:
        return [Refuse(reason)]
    actions: list[Action] = [
        DropManifest(epoch, fence)
        for epoch, fences in sorted(facts.manifests.items())
        if epoch > facts.durable
        for fence in fences
    ]
    for sink in facts.sinks:
        keep = frozenset(range(_settled(facts, sink) + 1, facts.durable + 1))
        actions.append(DiscardStaged(sink, keep))
    actions += [
        RecordShown(_settled(facts, sink), sink)
        for sink in facts.sinks
        if _settled(facts, sink) > facts.settled.get(sink, -1)
    ]
    return actions + list(_publications(facts))


def oldest_kept(*, durable: int, settled: int) -> int:
    """Older manifests neither a publisher nor the planner nor a restart will ask for again."""
    return min(settled + 1, durable) - KEPT_MANIFESTS


def retire(manifests: Mapping[int, tuple[int, ...]], oldest: int) -> list[DropManifest]:
    """The manifests of epochs before `oldest`."""
    stale = ((epoch, fences) for epoch, fences in manifests.items() if epoch < oldest)
    return [DropManifest(epoch, fence) for epoch, fences in sorted(stale) for fence in fences]


def _publications(facts: RecoveryFacts) -> Iterator[Publish]:
    first = min((_settled(facts, sink) for sink in facts.sinks), default=facts.durable) + 1
    for epoch in range(first, facts.durable + 1):
        for sink in facts.sinks:
            if epoch > _settled(facts, sink):
                yield Publish(epoch, sink)


def _settled(facts: RecoveryFacts, sink: str) -> int:
    return max(facts.settled.get(sink, -1), _known(facts.outside.get(sink)))


def _objections(facts: RecoveryFacts) -> Iterator[str]:
    yield from facts.altered
    yield from _gaps_in_logs(facts)
    yield from _published_ahead(facts)
    yield from _missing_manifests(facts)


def _gaps_in_logs(facts: RecoveryFacts) -> Iterator[str]:
    durable, newest = facts.durable, max(facts.offsets, default=-1)
    if newest > durable + 1:
        yield (
            f"offsets/{newest} exists, but the last commit is {_name(durable)}:"
            f" commits/{newest - 1} is missing"
        )
    # Spark reads the newest offset and the one before it when it starts.
    for epoch in {max(durable, 0), max(newest - 1, 0)}:
        if newest >= epoch and epoch not in facts.offsets:
            yield f"offsets/{epoch} is missing"
    if durable > newest:
        yield f"commits/{durable} exists, but offsets/{durable} is missing"
    if facts.known_durable > durable:
        yield (
            f"epoch {facts.known_durable} was durable, but the last commit is {_name(durable)}:"
            f" commits/{facts.known_durable} is missing"
        )


def _published_ahead(facts: RecoveryFacts) -> Iterator[str]:
    for sink in facts.sinks:
        seen = _known(facts.seen.get(sink))
        shown = max(facts.shown.get(sink, -1), _settled(facts, sink), seen)
        if shown > facts.durable:
            yield (
                f"sink {sink!r} shows epoch {shown}, but the last commit is"
                f" {_name(facts.durable)}: an older copy of the checkpoint would repeat rows;"
                " put the newest one back"
            )


def _missing_manifests(facts: RecoveryFacts) -> Iterator[str]:
    newest = max(facts.manifests, default=-1)
    if newest > facts.durable + 1:
        yield (
            f"epoch {newest} has a manifest, but the last commit is {_name(facts.durable)}:"
            f" commits/{newest - 1} is missing"
        )
    for epoch in _needed(facts):
        if epoch not in facts.manifests:
            yield f"the manifest of epoch {epoch} is missing"


def _needed(facts: RecoveryFacts) -> Iterable[int]:
    """Epochs to publish, and the last durable one: the planner goes on from its facts."""
    needed = {publication.epoch for publication in _publications(facts)}
    return sorted(needed | ({facts.durable} if facts.durable >= 0 else set()))


def _known(epoch: int | None) -> int:
    return -1 if epoch is None else epoch


def _name(epoch: int) -> str:
    return f"commits/{epoch}" if epoch >= 0 else "absent"
