"""Ports for local servers, kept in a file so that a server comes back where its clients look for it.

They lie below the range from which the system takes ports for outgoing connections: a client that asks for a server
that is away could otherwise be given the server's own port.
"""

import json
import random
import socket
from collections.abc import Sequence
from pathlib import Path

from headrace.errors import SetupError

__all__ = ["HOST", "kept_ports"]

HOST = "127.0.0.1"
_RANGE = range(20_000, 32_000)


def kept_ports(path: Path, names: Sequence[str]) -> dict[str, int]:
    """One port a name: those of the file, and free ones for names that it does not have."""
    kept: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
    missing = [name for name in names if name not in kept]
    for name in missing:
        kept[name] = _free_port(frozenset(kept.values()))
    if missing:  # others may be reading it
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(kept) + "\n")
        draft.replace(path)
    return kept


def _free_port(taken: frozenset[int]) -> int:
    for port in random.Random().sample(_RANGE, 200):  # other servers are started at the same time
        if port not in taken and _is_free(port):
            return port
    raise SetupError(f"No free port between {_RANGE.start} and {_RANGE.stop} on {HOST}.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
