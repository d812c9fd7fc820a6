"""The border between the engine and a user's code: what fails inside becomes a `UserCodeError`.

The error names the step, the place of the row in its source where that is known, and shows the user's own
traceback without the engine's frames. Errors that Headrace raises on purpose pass unchanged, and so does
`KeyboardInterrupt`, which is not the user function's doing. Never yield inside `calling`: whatever the
consumer raises would be blamed on the user.
"""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace._runtime.rows import Origin, Rows
from headrace.errors import HeadraceError, UserCodeError

__all__ = ["Index", "calling", "place"]

#: The row in question: its number in the batch, or a function that finds it once something has failed.
Index = int | Callable[[], int | None] | None

_PACKAGE = str(Path(__file__).resolve().parent.parent)


@contextmanager
def calling(uid: str, origin: Rows | Origin | None = None, index: Index = None) -> Iterator[None]:
    """Run user code of the step `uid` on the row `index` of a batch with this origin."""
    try:
        yield
    except (HeadraceError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - user code may raise anything, SystemExit too
        # `from None`: the message holds the traceback already, and the context stays for debuggers.
        raise UserCodeError(_describe(uid, error, place(origin, index))) from None


def place(origin: Rows | Origin | None, index: Index = None) -> str:
    """Where a row came from, as text for a message; empty if nobody knows."""
    if isinstance(origin, Rows):
        origin = origin.origin
    if origin is None:
        return ""
    text = f"source '{origin.source}', partition '{origin.partition}'"
    row = index() if callable(index) else index
    if row is not None and 0 <= row < len(origin.offsets):
        return f"{text}, offset {origin.offsets[row]}"
    if len(origin.offsets):
        return f"{text}, offsets {origin.offsets.min()} to {origin.offsets.max()}"
    return text


def _describe(uid: str, error: BaseException, where: str) -> str:
    summary = "".join(traceback.format_exception_only(error)).strip()
    head = f"The code of step '{uid}' raised {summary.splitlines()[0]}"
    lines = [head, f"  at {where}"] if where else [head]
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_PACKAGE)
    ]
    if frames:
        lines.append("Traceback (most recent call last):")
        lines.extend("".join(traceback.format_list(frames)).rstrip().splitlines())
        lines.extend(summary.splitlines())
    return "\n".join(lines)
