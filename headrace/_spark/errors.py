"""Carries our errors through Spark, and turns Spark's into ours. No Py4J text reaches a user.

An error in a worker or in the planner's process arrives at the driver as text inside other text. So ours
travel as one line of JSON between marks, and are built again on this side.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import headrace.errors as tree
from headrace.errors import EngineError, HeadraceError

__all__ = ["carried", "translate"]

_OPEN, _CLOSE = "<headrace-error ", " headrace-error>"
_CARRIED = re.compile(re.escape(_OPEN) + r"(\{.*?\})" + re.escape(_CLOSE), re.DOTALL)
_LONGEST = 2_000


class CarriedError(RuntimeError):
    """One of our errors on its way through Spark."""


@contextlib.contextmanager
def carried() -> Iterator[None]:
    """Around everything that Spark calls outside the driver."""
    try:
        yield
    except HeadraceError as error:
        body = json.dumps({"kind": type(error).__name__, "text": str(error)})
        raise CarriedError(f"{_OPEN}{body}{_CLOSE}") from error


def translate(error: BaseException, log: Path | None) -> HeadraceError:
    """The error that a user should see."""
    if isinstance(error, HeadraceError):
        return error
    text = str(error)
    found = _CARRIED.search(text)
    if found:
        # Java escapes nothing, but a Python repr inside the text may have doubled the backslashes.
        for body in (found.group(1), found.group(1).replace("\\\\", "\\")):
            with contextlib.suppress(ValueError, KeyError):
                fields = json.loads(body)
                return _kind(fields["kind"])(fields["text"])
    where = f"\nIts log is {log}" if log else ""
    return EngineError(f"Spark failed: {_reason(text)}{where}")


def _kind(name: str) -> type[HeadraceError]:
    kind = getattr(tree, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, HeadraceError) else EngineError


def _reason(text: str) -> str:
    """The last Python error in the text if there is one, else its beginning."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [
        line for line in lines if re.match(r"[A-Za-z_.]*(Error|Exception|Interrupt)\b.*:", line)
    ]
    if python:
        return python[-1][:_LONGEST]
    if "Answer from Java side is empty" in text or "Connection refused" in text:
        return "its Java process has ended"
    return (lines[0] if lines else "no reason was given")[:_LONGEST]
