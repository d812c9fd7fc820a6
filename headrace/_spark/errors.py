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
_GONE = "its Java process has ended"
_SIGNS_OF_DEATH = (
    _GONE,
    "Answer from Java side is empty",
    "Connection refused",
    "Error while receiving",
)
_PYTHON_ERROR = re.compile(r"(?!py4j|Py4J|pyspark\.)[A-Za-z_.]*(Error|Exception|Interrupt)\b.*:")


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
    """The error that a user should see; what Spark said goes to the log."""
    if isinstance(error, HeadraceError):
        return error
    text = _text(error)
    found = _CARRIED.search(text)
    if found:
        # Java escapes nothing, but a Python repr inside the text may have doubled the backslashes.
        for body in (found.group(1), found.group(1).replace("\\\\", "\\")):
            with contextlib.suppress(ValueError, KeyError):
                fields = json.loads(body)
                return _kind(fields["kind"])(fields["text"])
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        return EngineError(f"The job could not go on: {text}")
    return EngineError(f"Spark failed: {_reason(error, text)}{_logged(text, log)}")


def _text(error: BaseException) -> str:
    """Py4J asks the JVM for the text of a Java error, which fails when that JVM is gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it is, there is no text
        return _GONE


def _logged(text: str, log: Path | None) -> str:
    if log is None:
        return ""
    with contextlib.suppress(OSError), log.open("a") as file:
        file.write(text + "\n")
    return f"\nIts log is {log}"


def _kind(name: str) -> type[HeadraceError]:
    kind = getattr(tree, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, HeadraceError) else EngineError


def _reason(error: BaseException, text: str) -> str:
    """The last Python error in the text if there is one, else the last cause that Java names."""
    gone = isinstance(error, ConnectionError) or type(error).__name__ == "Py4JNetworkError"
    if gone or any(sign in text for sign in _SIGNS_OF_DEATH):
        return _GONE
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    python = [line for line in lines if _PYTHON_ERROR.match(line)]
    causes = [line.partition(":")[2].strip() for line in lines if line.startswith("Caused by:")]
    return ([*lines[:1], *causes, *python] or ["no reason was given"])[-1][:_LONGEST]
