"""Errors of a user's sink, told as what they are.

An `OSError` (a lost connection, a time-out) means that the system outside is away: the call is made again. Anything else
is a fault of the sink's code and ends the attempt with the name of the method. Headrace's own errors pass: with
`SinkError` and `SinkRefused` a sink says itself what is to happen.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.errors import HeadraceError, SinkError, UserCodeError

__all__ = ["blamed"]


@contextmanager
def blamed(sink: object, method: str, uid: str) -> Iterator[None]:
    """Call one method of a user's sink."""
    try:
        yield
    except HeadraceError:
        raise
    except OSError as error:
        raise SinkError(f"sink {uid!r}: {_told(sink, method, error)}") from error
    except Exception as error:
        text = f"sink {uid!r}: {_told(sink, method, error)}\n{traceback.format_exc()}"
        raise UserCodeError(text) from error


def _told(sink: object, method: str, error: Exception) -> str:
    return f"{type(sink).__name__}.{method} failed: {type(error).__name__}: {error}"
