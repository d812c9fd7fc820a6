"""What PostgreSQL's errors mean: who waits, who must act, and what the sentence tells them."""

import re
from typing import TYPE_CHECKING

from headrace.connectors.databases.dialect import Verdict, advice_on_rows

if TYPE_CHECKING:
    import psycopg

__all__ = ["verdict"]

#: Classes and codes under which the same may succeed later: lost connections, a server that starts or stops, rolled
#: back for the sake of another transaction, no room, a standby that takes no writes until it is promoted.
_LATER = re.compile(r"08|57|40|53|58|55P03|25006|25P0[34]")
#: A connection that is refused has no code: only words. These will not change by waiting.
_NEVER = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|is not permitted to log in"
    r"|permission denied|invalid connection option|invalid (?:port|integer|sslmode|connection)|certificate"
)

_ADVICE = {
    "23505": 'mode="insert" only adds rows, so use mode="upsert" with the columns of that constraint as key;'
    " in an upsert another row than the key's has the value: delete that row, or drop the constraint",
    "23503": "write the rows it refers to first, or drop the constraint",
    "42501": "grant SELECT, INSERT, UPDATE and DELETE on the table, and TEMPORARY on the database, to this user",
    "42P01": "the table was there when the job began; make it again and start the job",
    "42703": "the column was there when the job began; add it again and start the job",
    "42P10": "make a unique index on the key: create unique index on the table (key columns)",
}
#: What helps the rows at hand, and what the ones behind them.
_ON_ROWS = {
    "23502": ("drop NOT NULL from the column", "give every row a value for it"),
    "23514": ("change the constraint", "filter the rows that break it in the stream"),
    "22001": ("widen the column", "cut the text in the stream"),
    "22003": ("widen the column's type", "filter such numbers in the stream"),
    "22P02": (
        "the table's type does not take this text: change the column of the table",
        "change that of the stream",
    ),
    "22021": (
        "the database's encoding has no such character: use a UTF8 database",
        "take it out in the stream",
    ),
    "22P05": (
        "jsonb cannot hold the character NUL: make the column json or text",
        "take it out in the stream",
    ),
    "21000": (
        "two rows of one epoch have keys that the server holds equal ('A' and 'a' in a citext): let them differ there",
        "make them equal in the stream",
    ),
}


def verdict(error: "psycopg.Error") -> Verdict:
    """What an error of psycopg means."""
    text = " ".join(str(error).split())
    state = error.sqlstate
    if state is None:
        refused = bool(_NEVER.search(text)) or not _is_about_the_connection(error)
        return Verdict(refused, text)
    if _LATER.match(state):
        return Verdict(refused=False, sentence=_told(error, text))
    advice = _ADVICE.get(state)
    told = _told(error, text)
    on_rows = advice_on_rows(*_ON_ROWS[state]) if state in _ON_ROWS else ""
    return Verdict(True, f"{told}; {advice}" if advice else told, on_rows)


def _is_about_the_connection(error: Exception) -> bool:
    import psycopg

    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _told(error: "psycopg.Error", text: str) -> str:
    """The server's sentence, with the names that it keeps apart from it."""
    diagnosis = error.diag
    parts = [diagnosis.message_primary or text, diagnosis.message_detail]
    said = ": ".join(part.rstrip(".") for part in parts if part)
    names = {"constraint": diagnosis.constraint_name, "column": diagnosis.column_name}
    added = [f"{kind} {name!r}" for kind, name in names.items() if name and name not in said]
    return f"{said} ({', '.join(added)})" if added else said
