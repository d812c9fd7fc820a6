"""One connection that is kept between epochs and opened anew behind every error.

After an error nobody knows what the server thinks of the transaction, least of all if the connection was lost during
the commit. So the connection is dropped whatever happened, and the next one asks the marker.
"""

import contextlib
from collections.abc import Iterator

from headrace.connectors.databases.access import Access
from headrace.connectors.databases.dialect import Connection, Cursor, Dialect
from headrace.errors import SinkError, SinkRefused

__all__ = ["Session"]


class Session:
    """Transactions on one database, for one thread at a time."""

    def __init__(self, dialect: Dialect, access: Access, purpose: str) -> None:
        self._dialect = dialect
        self._access = access
        self._purpose = purpose
        self._connection: Connection | None = None

    @contextlib.contextmanager
    def transaction(self, doing: str) -> Iterator[Cursor]:
        """A cursor whose statements are committed together. `doing` is what an error says was going on."""
        try:
            connection = self._opened()
            with connection.cursor() as cursor:
                yield cursor
            connection.commit()
        except self._dialect.driver_error as error:
            self.close()
            raise self._translated(error, doing) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Drop the connection; what was not committed is undone by the server."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._dialect.connect(self._access, self._purpose)
        return self._connection

    def _translated(self, error: Exception, doing: str) -> SinkError:
        verdict = self._dialect.verdict(error)
        kind = SinkRefused if verdict.refused else SinkError
        said = "; ".join(part for part in (verdict.sentence, verdict.on_rows) if part)
        where = f"{self._dialect.name} at {self._access.shown}"
        return kind(f"{where}, {doing}: {self._access.scrubbed(said)}")
