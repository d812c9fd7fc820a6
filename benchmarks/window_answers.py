"""What windows.py's queries must answer, computed row by row in plain Python.

Slow, and independent of both contenders: it is how `windows.py --check` knows that the two compute the same, and the
right thing. An answer is (account, window start, window end, events, total), with the row's own time and amount
instead of the window for look-back, and neither for count. Times are milliseconds since 1970.
"""

from collections import defaultdict
from collections.abc import Iterator

__all__ = ["answers"]

FIRST_MS = 1_767_225_600_000
SIZE_MS, STEP_MS, GAP_MS = 10_000, 2_000, 3_000
COUNT_ROWS = 5

Answer = tuple[int, ...]
#: account -> (time, amount) of its rows in order
Events = dict[int, list[tuple[int, int]]]


def answers(kind: str, rows: int, keys: int, event_rate: int) -> list[Answer]:
    """All results of a kind of window, sorted."""
    by_account: Events = defaultdict(list)
    for number in range(rows):
        account = (number * 7919 + 13) % keys
        if kind == "session":
            place = (number * 7919 + 13) % (keys // 2)
            account = (place + number * keys // (10 * event_rate)) % keys
        time_ms = FIRST_MS + number * 1000 // event_rate
        by_account[account].append((time_ms, number % 100))
    return sorted(
        (account, *answer)
        for account, events in by_account.items()
        for answer in KINDS[kind](events)
    )


def _hopping(events: list[tuple[int, int]]) -> Iterator[Answer]:
    starts = {t // STEP_MS * STEP_MS - n * STEP_MS for t, _ in events for n in range(5)}
    for start in starts:
        yield from _window(events, start, start + SIZE_MS)


def _cumulating(events: list[tuple[int, int]]) -> Iterator[Answer]:
    for start in {t // SIZE_MS * SIZE_MS for t, _ in events}:
        for end in range(start + STEP_MS, start + SIZE_MS + 1, STEP_MS):
            yield from _window(events, start, end)


def _window(events: list[tuple[int, int]], start: int, end: int) -> Iterator[Answer]:
    inside = [amount for t, amount in events if start <= t < end]
    if inside:
        yield start, end, len(inside), sum(inside)


def _session(events: list[tuple[int, int]]) -> Iterator[Answer]:
    begin = 0
    for last, (t, _) in enumerate(events):
        if last + 1 == len(events) or events[last + 1][0] > t + GAP_MS:
            amounts = [amount for _, amount in events[begin : last + 1]]
            yield events[begin][0], t + GAP_MS, len(amounts), sum(amounts)
            begin = last + 1


def _look_back(events: list[tuple[int, int]]) -> Iterator[Answer]:
    for t, amount in events:
        seen = [a for other, a in events if t - SIZE_MS <= other <= t]
        yield t, amount, len(seen), sum(seen)


def _count(events: list[tuple[int, int]]) -> Iterator[Answer]:
    for end in range(COUNT_ROWS, len(events) + 1, COUNT_ROWS):
        yield COUNT_ROWS, sum(amount for _, amount in events[end - COUNT_ROWS : end])


KINDS = {
    "hopping": _hopping,
    "session": _session,
    "cumulating": _cumulating,
    "look-back": _look_back,
    "count": _count,
}
