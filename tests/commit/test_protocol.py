"""One row per crash point: the facts that a kill leaves behind, and what the next start must do."""

from dataclasses import replace

import pytest

from headrace._commit.protocol import (
    Action,
    DiscardStaged,
    DropManifest,
    Publish,
    RecordShown,
    RecoveryFacts,
    Refuse,
    decide,
    oldest_kept,
    retire,
)

SINKS = ("a", "b")

# Epochs 0 to 4 are durable and published; the kill comes somewhere in epoch 5 (K1 to K7) or in its
# publication (K8 to K11).
QUIET = RecoveryFacts(
    sinks=SINKS,
    offsets=(0, 1, 2, 3, 4),
    commits=(0, 1, 2, 3, 4),
    manifests=dict.fromkeys(range(5), (1,)),
    shown={"a": 4, "b": 4},
    settled={"a": 4, "b": 4},
    known_durable=4,
)
PLANNED = replace(QUIET, offsets=(*QUIET.offsets, 5))
RECORDED = replace(PLANNED, manifests={**QUIET.manifests, 5: (1,)})
DURABLE = replace(RECORDED, commits=(*QUIET.commits, 5))


def discards(*keep: int) -> list[Action]:
    return [DiscardStaged(sink, frozenset(keep)) for sink in SINKS]


CRASHES: dict[str, tuple[RecoveryFacts, list[Action]]] = {
    "K1 before offsets/5": (QUIET, discards()),
    "K2 temporary offset": (QUIET, discards()),
    "K3 offsets/5 visible": (PLANNED, discards()),
    "K4 some state committed": (PLANNED, discards()),
    "K5 staged, no manifest": (PLANNED, discards()),
    "K6 manifest written": (RECORDED, [DropManifest(5, 1), *discards()]),
    "K7 no commit yet": (RECORDED, [DropManifest(5, 1), *discards()]),
    "K8 nothing published": (DURABLE, [*discards(5), Publish(5, "a"), Publish(5, "b")]),
    "K9 one of two published": (
        replace(DURABLE, outside={"a": 5}),
        [
            DiscardStaged("a", frozenset()),
            DiscardStaged("b", frozenset({5})),
            RecordShown(5, "a"),
            Publish(5, "b"),
        ],
    ),
    "K9 where the sink keeps no marker": (
        DURABLE,
        [*discards(5), Publish(5, "a"), Publish(5, "b")],
    ),
    "K10 reply lost, the marker is there": (
        replace(DURABLE, outside={"a": 5, "b": 5}),
        [*discards(), RecordShown(5, "a"), RecordShown(5, "b")],
    ),
    "K10 reply lost, the commit too": (
        replace(DURABLE, outside={"a": 4, "b": 4}),
        [*discards(5), Publish(5, "a"), Publish(5, "b")],
    ),
    "K11 published, not recorded": (
        DURABLE,
        [*discards(5), Publish(5, "a"), Publish(5, "b")],
    ),
    "nothing at all": (RecoveryFacts(sinks=SINKS), discards()),
    "killed in the first epoch": (
        RecoveryFacts(sinks=SINKS, offsets=(0,), manifests={0: (1,)}),
        [DropManifest(0, 1), *discards()],
    ),
    "two runs died in one epoch": (
        replace(RECORDED, manifests={**QUIET.manifests, 5: (1, 2)}),
        [DropManifest(5, 1), DropManifest(5, 2), *discards()],
    ),
    "some files of a durable epoch are shown": (
        replace(DURABLE, seen={"a": 5, "b": None}),
        [*discards(5), Publish(5, "a"), Publish(5, "b")],
    ),
    "several epochs wait": (
        replace(DURABLE, settled={"a": 2, "b": 4}, shown={"a": 4, "b": 4}),
        [
            DiscardStaged("a", frozenset({3, 4, 5})),
            DiscardStaged("b", frozenset({5})),
            Publish(3, "a"),
            Publish(4, "a"),
            Publish(5, "a"),
            Publish(5, "b"),
        ],
    ),
    "old commits are purged": (
        replace(DURABLE, commits=(4, 5), offsets=(4, 5)),
        [*discards(5), Publish(5, "a"), Publish(5, "b")],
    ),
    "no sinks": (replace(DURABLE, sinks=(), shown={}, settled={}), []),
}


@pytest.mark.parametrize(("facts", "expected"), CRASHES.values(), ids=CRASHES)
def test_a_crash_leads_to_these_actions(facts: RecoveryFacts, expected: list[Action]) -> None:
    assert decide(facts) == expected


REFUSALS: dict[str, tuple[RecoveryFacts, str]] = {
    "a sink is ahead of the commits": (
        replace(RECORDED, outside={"a": 5}),
        "sink 'a' shows epoch 5",
    ),
    "a sink holds rows of a later epoch": (
        replace(QUIET, seen={"a": 4, "b": 5}),
        "sink 'b' shows epoch 5",
    ),
    "a sink holds rows and nothing was ever durable": (
        RecoveryFacts(sinks=SINKS, seen={"a": None, "b": 0}),
        "sink 'b' shows epoch 0",
    ),
    "noted ahead of the commits": (
        replace(QUIET, shown={"a": 7, "b": 4}),
        "sink 'a' shows epoch 7",
    ),
    "the newest commit was deleted": (
        replace(QUIET, commits=(0, 1, 2, 3), known_durable=4),
        "commits/4 is missing",
    ),
    "all commits were deleted": (
        replace(QUIET, commits=(), known_durable=-1, shown={}, settled={}),
        "commits/3 is missing",
    ),
    "spark's directory was deleted": (
        replace(QUIET, commits=(), offsets=(), known_durable=-1, shown={}, settled={}),
        "commits/3 is missing",
    ),
    "the newest offset was deleted": (replace(QUIET, offsets=(0, 1, 2, 3)), "offsets/4 is missing"),
    "the offset before it was deleted": (
        replace(QUIET, offsets=(0, 1, 2, 4)),
        "offsets/3 is missing",
    ),
    "all offsets were deleted": (replace(QUIET, offsets=()), "offsets/4 is missing"),
    "the last manifest was deleted": (
        replace(QUIET, manifests=dict.fromkeys(range(4), (1,))),
        "the manifest of epoch 4 is missing",
    ),
    "an unpublished manifest was deleted": (
        replace(DURABLE, manifests={4: (1,), 5: (1,)}, settled={"a": 2, "b": 4}),
        "the manifest of epoch 3 is missing",
    ),
    "a file was altered": (
        replace(QUIET, altered=("offsets/4 does not match",)),
        "offsets/4 does not match",
    ),
}


@pytest.mark.parametrize(("facts", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_facts_that_do_not_fit_are_refused(facts: RecoveryFacts, reason: str) -> None:
    (action,) = decide(facts)
    assert isinstance(action, Refuse)
    assert reason in action.reason


def test_manifests_go_only_behind_what_publication_and_restart_need() -> None:
    manifests = dict.fromkeys(range(30), (1,))
    behind = oldest_kept(durable=29, settled=12)
    assert [drop.epoch for drop in retire(manifests, behind)] == [0, 1, 2, 3, 4]
    assert retire(manifests, oldest_kept(durable=29, settled=-1)) == []
    level = oldest_kept(durable=29, settled=29)
    kept = set(manifests) - {drop.epoch for drop in retire(manifests, level)}
    assert {28, 29} <= kept
