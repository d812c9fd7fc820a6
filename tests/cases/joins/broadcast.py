"""Kafka's page on the semantics of joins: a stream and a table, one record an instant, all of one key.

stream      1 null       3 A       5 B       7 null       9 C             12 null              15 D
table            2 null       4 a       6 b       8 null      10 c  11 null     13 null  14 d

A null in the table deletes: here a "-D". A null in the stream is no record. The join answers with the table of the moment,
so each instant is an epoch.
"""

from datetime import datetime

import headrace as hr
from tests.cases.harness.case import Case

STREAM = {3: "A", 5: "B", 9: "C", 15: "D"}
TABLE = {2: None, 4: "a", 6: "b", 8: None, 10: "c", 11: None, 13: None, 14: "d"}


def instants(header: str, rows: dict[int, str]) -> str:
    """An epoch for each instant."""
    return "\n".join([header, *(f"{rows.get(instant, '')}\n---" for instant in range(1, 16))])


RECORDS = {
    "stream": instants(
        "at: time | key: str | left: str",
        {at: f"00:00:{at:02} | k | {value}" for at, value in STREAM.items()},
    ),
    "table": instants(
        "key: str | right: str | change: str",
        {at: f"k | {value or 'null'} | {'+U' if value else '-D'}" for at, value in TABLE.items()},
    ),
}


def with_times(joined: hr.Stream) -> hr.Stream:
    """The timestamps of the results as a column."""
    return joined.process(
        lambda row, ctx: [{"left": row.left, "right": row.right, "time": ctx.timestamp}],
        schema={"left": str, "right": str, "time": datetime},
    )


INNER = Case(
    inputs=RECORDS,
    pipeline=lambda stream, table: stream.join(table.broadcast(), on="key"),
    expected="""
        left | right
        B    | a
        D    | d
    """,
)
LEFT = Case(
    inputs=RECORDS,
    pipeline=lambda stream, table: stream.join(table.broadcast(), on="key", how="left"),
    expected="""
        left | right
        A    | null
        B    | a
        C    | null
        D    | d
    """,
)
#: A result has the time of its row of the stream.
TIMES = Case(
    inputs=RECORDS,
    pipeline=lambda stream, table: with_times(stream.join(table.broadcast(), on="key", how="left")),
    expected="""
        left | right | time
        A    | null  | 00:00:03
        B    | a     | 00:00:05
        C    | null  | 00:00:09
        D    | d     | 00:00:15
    """,
)
