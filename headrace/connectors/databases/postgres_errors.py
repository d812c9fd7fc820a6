"""What PostgreSQL's errors mean: who waits, who must act, and what the sentence tells them."""

import re
from typing import TYPE_CHECKING

from headrace.connectors.databases.dialect import Verdict

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
    " in an upsert another row than the key's has the value",
    "23502": "give every row a value for it, or drop NOT NULL from the column",
    "23503": "write the rows it refers to first, or drop the constraint",
    "23514": "filter the rows that break it, or change the constraint",
    "22001": "widen the column, or cut the text in the stream",
    "22003": "widen the column's type, or filter such numbers",
    "22P02": "the table's type does not take this text; change the column of the stream or of the table",
    "22021": "the database's encoding has no such character; use a UTF8 database, or take it out in the stream",
    "22P05": "jsonb cannot hold the character NUL; take it out in the stream",
    "21000": "two rows of one epoch have keys that the server holds equal (such as 'A' and 'a' in a citext):"
    " make them equal in the stream",
    "42501": "grant SELECT, INSERT, UPDATE and DELETE on the table, and TEMPORARY on the database, to this user",
    "42P01": "the table was there when the job began; make it again and start the job",
    "42703": "the column was there when the job began; add it again and start the job",
    "42P10": "make a unique index on the key: create unique index on the table (key columns)",
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
    return Verdict(refused=True, sentence=f"{told}; {advice}" if advice else told)


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
