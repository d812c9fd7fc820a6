"""The watermark of a step that several sources feed: the least of those that are not idle. Pure.

    source a   W = 40
    source b   W = 10, idle          a step fed by both: 40
    source b wakes, W = 10           it stays at 40 until b has passed it: rows of b below 40 are late

It cannot follow from the sources' watermarks alone, because it must not fall when an idle source wakes. So
it is an entry of its own among the watermarks of an epoch, named after the sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from headrace.watermarks import END_OF_TIME, NO_WATERMARK

__all__ = ["merged_name", "merged_watermark", "watermark_of"]


def merged_name(feeds: Iterable[str]) -> str:
    """The entry of a step that is fed by these; uids have no plus sign.

    >>> merged_name(["b", "a"])
    'a+b'
    """
    return "+".join(sorted(feeds))


def watermark_of(vector: Mapping[str, int], feeds: Iterable[str]) -> int:
    """The watermark of a step that is fed by these, in a vector of an epoch."""
    feeds = tuple(feeds)
    merged = vector.get(merged_name(feeds)) if len(feeds) > 1 else None
    if merged is not None:
        return merged
    return min((vector[uid] for uid in feeds), default=END_OF_TIME)


def merged_watermark(
    feeds: Collection[str],
    *,
    before: int,
    watermarks: Mapping[str, int],
    resting: Collection[str],
) -> int:
    """The least of the active ones; with all of them idle, the greatest. It never falls below `before`."""
    unfinished = {
        uid: watermarks.get(uid, NO_WATERMARK)
        for uid in feeds
        if watermarks.get(uid, NO_WATERMARK) != END_OF_TIME
    }
    if not unfinished:
        return END_OF_TIME
    active = [mark for uid, mark in unfinished.items() if uid not in resting]
    return max(before, min(active) if active else max(unfinished.values()))
