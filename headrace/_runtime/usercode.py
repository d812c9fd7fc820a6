"""The border between the engine and a user's code: what fails inside becomes a `UserCodeError`.

The error names the step, the row with its key and its place in its source where those are known, and shows the user's
own traceback without the engine's frames. Errors that Headrace raises on purpose pass unchanged, and so does
`KeyboardInterrupt`, which is not the user function's doing. Never yield inside `calling`: whatever the
consumer raises would be blamed on the user.
"""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from headrace._runtime.columns import row_objects
from headrace._runtime.rows import Origin, Rows
from headrace.errors import HeadraceError, UserCodeError

__all__ = ["OURS", "Index", "Shown", "TookTooLong", "calling", "cause_of", "failed", "place"]

#: The row in question: its number in the batch, or a function that finds it once something has failed.
Index = int | Callable[[], int | None] | None
#: Finds a key or a row once something has failed.
Shown = Callable[[], Any] | None

#: What is never blamed on a user's code.
OURS = (KeyboardInterrupt, GeneratorExit)

_PACKAGE = str(Path(__file__).resolve().parent.parent)
_LONGEST = 500
_AT = "\n  at "


class TookTooLong(BaseException):
    """Raised inside a call that has run for too long. No `Exception`, so that a user's handler lets it pass."""


@contextmanager
def calling(
    uid: str,
    origin: Rows | Origin | None = None,
    index: Index = None,
    *,
    key: Shown = None,
    row: Shown = None,
) -> Iterator[None]:
    """Run user code of the step `uid` on the row `index` of a batch with this origin.

    `key` and `row` find those that the code was called with, for steps that have no batch to look into.
    """
    try:
        yield
    except UserCodeError as error:
        # What the engine refuses in the middle of a call does not know of which row that was.
        where = place(origin, index, key=key, row=row)
        if not where or _AT in str(error):
            raise
        raise UserCodeError(f"{error}{_AT}{where}") from None
    except (HeadraceError, *OURS):
        raise
    except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
        # `from None`: the message holds the traceback already, and the context stays for debuggers.
        raise failed(uid, error, place(origin, index, key=key, row=row)) from None


def failed(uid: str, error: BaseException, where: str = "") -> UserCodeError:
    """The error of a step whose code raised this; `where` is what `place` says."""
    cause, trace = cause_of(error)
    head = f"The code of step '{uid}' raised {cause.splitlines()[0]}"
    if isinstance(error, TookTooLong):
        head = f"A call of the code of step '{uid}' {error}"
    lines = [head, f"  at {where}"] if where else [head]
    return UserCodeError("\n".join([*lines, trace] if trace else lines))


def cause_of(error: BaseException) -> tuple[str, str | None]:
    """What a user's code raised, as "ValueError: ...", and its traceback through the user's own frames, if it has any."""
    if isinstance(error, HeadraceError | TookTooLong):
        cause = str(error)
    else:
        cause = "".join(traceback.format_exception_only(error)).strip()
    at = tuple(
        (frame.f_code, line, step)
        for frame, line, step in _walked(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_PACKAGE)
    )
    return cause, f"Traceback (most recent call last):\n{_shown(at)}\n{cause}" if at else None


def place(
    origin: Rows | Origin | None,
    index: Index = None,
    *,
    key: Shown = None,
    row: Shown = None,
) -> str:
    """Which row it was and where it came from, as text for a message; empty if nobody knows."""
    number = index() if callable(index) else index
    if row is None and isinstance(origin, Rows) and number is not None and number < len(origin):
        row = partial(_row, origin, number)
    found = [_source(origin.origin if isinstance(origin, Rows) else origin, number)]
    found += [f"key {_cut(key)}" if key is not None else "", f"row {_cut(row)}" if row else ""]
    return "\n  ".join(filter(None, found))


def _walked(trace: TracebackType | None) -> Iterator[tuple[FrameType, int, int]]:
    while trace is not None:
        yield trace.tb_frame, trace.tb_lineno, trace.tb_lasti
        trace = trace.tb_next


@lru_cache(maxsize=512)
def _shown(at: tuple[tuple[CodeType, int, int], ...]) -> str:
    """Code and its lines as a traceback shows them. Many rows fail at the same place, and to show it is dear."""
    frames = []
    for code, line, step in at:
        _, end, column, end_column = next(islice(code.co_positions(), max(step, 0) // 2, None))
        frames.append(
            traceback.FrameSummary(
                code.co_filename,
                line,
                code.co_name,
                end_lineno=end,
                colno=column,
                end_colno=end_column,
            )
        )
    return "".join(traceback.format_list(frames)).rstrip()


def _source(origin: Origin | None, row: int | None) -> str:
    if origin is None:
        return ""
    text = f"source '{origin.source}', partition '{origin.partition}'"
    if row is not None and 0 <= row < len(origin.offsets):
        return f"{text}, offset {origin.offsets[row]}"
    if len(origin.offsets):
        return f"{text}, offsets {origin.offsets.min()} to {origin.offsets.max()}"
    return text


def _row(rows: Rows, number: int) -> Any:
    return row_objects(rows.batch.slice(number, 1))[0]


def _cut(shown: Callable[[], Any]) -> str:
    """What it is, as far as a message can hold it; to show it may run the user's own `__repr__`."""
    try:
        text = repr(shown())
    except Exception as error:  # noqa: BLE001 - a message about one failure must not become another
        return f"that cannot be shown ({type(error).__name__})"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"
