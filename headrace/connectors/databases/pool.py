"""Connections that a worker process keeps between epochs: opening one costs more than many a read."""

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator

from headrace.connectors.databases.access import Access
from headrace.connectors.databases.dialect import Connection, Dialect
from headrace.errors import EngineError, HeadraceError, InputError

__all__ = ["close_all", "reading"]

_LOCK = threading.Lock()
#: Open connections that nobody uses at the moment, by where they lead.
_IDLE: dict[tuple[object, ...], list[Connection]] = {}
#: Those of a process that this one was forked from; kept, so that nobody closes them.
_INHERITED: list[Connection] = []
#: More than these are closed when they come back.
_KEPT = 4


@contextlib.contextmanager
def reading(dialect: Dialect, access: Access, doing: str) -> Iterator[Connection]:
    """A connection to read with, for one thread; it is kept unless an error came by.

    What will not change by waiting is an `InputError`, everything else an `EngineError`: the epoch is run again.
    """
    connection: Connection | None = None
    try:
        connection = _taken(dialect, access)
        yield connection
        connection.rollback()
    except dialect.driver_error as error:
        _drop(connection)
        raise translated(dialect, access, error, doing) from None
    except BaseException:
        # Whoever reads may also stop in the middle of the rows.
        _drop(connection)
        raise
    _give_back(dialect, access, connection)


def translated(dialect: Dialect, access: Access, error: Exception, doing: str) -> HeadraceError:
    """An error of the driver in our words."""
    verdict = dialect.verdict(error)
    kind = InputError if verdict.refused else EngineError
    return kind(f"{dialect.name} at {access.shown}, {doing}: {access.scrubbed(verdict.sentence)}")


@atexit.register
def close_all() -> None:
    """Close what nobody uses."""
    with _LOCK:
        kept = [connection for waiting in _IDLE.values() for connection in waiting]
        _IDLE.clear()
    for connection in kept:
        _drop(connection)


def _begin_anew() -> None:
    """A forked process leaves its parent's connections alone: to close one would end it for both."""
    global _LOCK
    _LOCK = threading.Lock()
    _INHERITED.extend(connection for waiting in _IDLE.values() for connection in waiting)
    _IDLE.clear()


os.register_at_fork(after_in_child=_begin_anew)


def _taken(dialect: Dialect, access: Access) -> Connection:
    with _LOCK:
        waiting = _IDLE.get(_place(dialect, access))
        kept = waiting.pop() if waiting else None
    if kept is not None and _answers(dialect, kept):
        return kept
    _drop(kept)
    return dialect.connect(access, "source")


def _give_back(dialect: Dialect, access: Access, connection: Connection) -> None:
    with _LOCK:
        waiting = _IDLE.setdefault(_place(dialect, access), [])
        if len(waiting) < _KEPT:
            waiting.append(connection)
            return
    _drop(connection)


def _answers(dialect: Dialect, connection: Connection) -> bool:
    """The server may have gone since the last epoch."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchall()
        connection.rollback()
    except dialect.driver_error:
        return False
    return True


def _drop(connection: Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(Exception):
            connection.close()


def _place(dialect: Dialect, access: Access) -> tuple[object, ...]:
    return (dialect.name, access.dsn, *sorted(access.options.items()))
