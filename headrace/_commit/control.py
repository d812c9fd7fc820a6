"""What the planner is asked to do. The driver writes it; the planner's process reads it."""

from __future__ import annotations

import json
from typing import Literal

from headrace._commit.files import remove, write_durably
from headrace._commit.paths import Layout

__all__ = [
    "Request",
    "clear_stopped",
    "is_stopped",
    "mark_stopped",
    "read_request",
    "write_request",
]

#: Go on; plan nothing more; send the last watermark and end.
Request = Literal["run", "stop", "drain"]


def write_request(layout: Layout, request: Request) -> None:
    """Replace the request. Every start writes "run" first: a request does not outlive its run."""
    write_durably(layout.control, json.dumps({"request": request}).encode())


def read_request(layout: Layout) -> Request:
    """The request; "run" if there is none. It holds nothing worth failing for."""
    try:
        asked = json.loads(layout.control.read_bytes()).get("request")
    except (FileNotFoundError, ValueError, AttributeError):
        return "run"
    if asked == "stop":
        return "stop"
    return "drain" if asked == "drain" else "run"


def mark_stopped(layout: Layout) -> None:
    """The planner has seen the request to stop. It is asked only between epochs, so none is under way."""
    layout.stopped.touch()


def is_stopped(layout: Layout) -> bool:
    """Whether the planner has said that it plans nothing more."""
    return layout.stopped.exists()


def clear_stopped(layout: Layout) -> None:
    """A new run begins."""
    remove(layout.stopped)
