"""The first, the last and the best row of each key, in order of arrival; `last` and `top` are tables that change."""

import headrace as hr
from headrace.windows import Global
from tests.cases.harness.case import Case

BIDS = """
    auction: str | bidder: str | price: int
    tea          | ada         | 3
    cup          | bob         | 7
    tea          | cyd         | 9
    tea          | dan         | 9
    cup          | eve         | 5
    tea          | fay         | 2
"""

FIRST = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.key_by("auction").first(forever=True),
    expected="""
        auction | bidder | price
        tea     | ada    | 3
        cup     | bob    | 7
    """,
)

LAST = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.key_by("auction").last(forever=True),
    expected="""
        auction | bidder | price
        tea     | fay    | 2
        cup     | eve    | 5
    """,
)

#: Of equal ones the first.
TOP = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: bids.key_by("auction").top("price", forever=True),
    expected="""
        auction | bidder | price
        tea     | cyd    | 9
        cup     | bob    | 7
    """,
)

#: A sum over a table that changes takes retracted rows back.
SUM_OF_TOP = Case(
    inputs={"bids": BIDS},
    pipeline=lambda bids: (
        bids.key_by("auction")
        .top("price", forever=True)
        .window_all(Global())
        .aggregate(auctions=hr.count(), total=hr.sum("price"))
    ),
    expected="""
        auctions | total
        2        | 16
    """,
)

#: SELECT COUNT(*) per city over the last address of each person.
PER_CITY = Case(
    inputs={
        "moves": """
            person: str | city: str
            ada         | London
            bob         | London
            ada         | Turin
            cyd         | Turin
            bob         | Paris
        """,
    },
    pipeline=lambda moves: (
        moves.key_by("person")
        .last(forever=True)
        .key_by("city")
        .window(Global())
        .aggregate(people=hr.count())
        .filter(hr.col("people") > 0)
    ),
    expected="""
        city  | people
        Turin | 2
        Paris | 1
    """,
)
