"""Where in the user's code a builder was called: the first frame that is not Headrace's own."""

import inspect
from pathlib import PurePath

__all__ = ["calling_depth", "calling_line"]

_PACKAGE = __name__.partition(".")[0]


def calling_line() -> str:
    """The user's line as "file.py:12"; empty if there is none, as in an embedded interpreter."""
    frame = inspect.currentframe()
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"


def calling_depth() -> int:
    """How far above the caller the user's line is, as `warnings.warn` counts: 1 is the caller itself."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, depth = frame.f_back, depth + 1
    return depth


def _is_ours(module: str) -> bool:
    return module == _PACKAGE or module.startswith(_PACKAGE + ".")
