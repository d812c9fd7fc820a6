"""Where short-lived files go: a disk in memory if there is one. Staged files are synced one by one, which a test need not wait for."""

import os

__all__ = ["memory_disk"]

_PLACE = "/dev/shm"  # noqa: S108 - callers make a directory with a unique name in it


def memory_disk() -> str | None:
    """The disk in memory, or None: the system's directory for temporary files."""
    return _PLACE if os.access(_PLACE, os.W_OK) else None
