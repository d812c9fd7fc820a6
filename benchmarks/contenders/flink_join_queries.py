"""The joins of joins.py in Flink's SQL: views that make the rows, and a query for each kind.

All rows come from one table of numbers. Orders and payments are its even and its odd numbers. Persons, auctions and bids are
views by kind of event, as Nexmark has them, and q3, q8, q9 and q20 are Nexmark's own queries.
"""

from auction_house import (
    CHANNELS,
    CITIES,
    DRAWS,
    EVENTS_PER_HORIZON,
    FIRST_NAMES,
    LAST_NAMES,
    LETTERS,
    MODULUS,
    STATES,
    STATES_OF_Q3,
    URL,
)

__all__ = ["NUMBERS", "QUERIES", "WITH_CHANGES", "views"]

NUMBERS = """
CREATE TABLE numbers (
  n BIGINT,
  ts AS TO_TIMESTAMP_LTZ(1767225600000 + n * 1000 / {event_rate}, 3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH (
  'connector' = 'datagen', 'rows-per-second' = '1000000000',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '{last}'
)"""


def _draw(use: str) -> str:
    return f"MOD(n * {DRAWS[use]} + 13, {MODULUS})"


def _below(use: str, limit: int | str) -> str:
    return f"MOD({_draw(use)}, {limit})"


def _one_of(use: str, words: list[str]) -> str:
    quoted = ", ".join(f"'{word}'" for word in words)
    return f"ELT(1 + {_below(use, len(words))}, {quoted})"


def _text(length: str) -> str:
    piece = _below("text", 100)
    return f"SUBSTRING('{LETTERS}', 1 + {piece}, {length.format(piece)})"


def _price(mantissa: str, scale: str) -> str:
    powers = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    cases = " ".join(f"WHEN {n} THEN CAST({p} AS BIGINT)" for n, p in enumerate(powers))
    return f"(CASE {_below(scale, 6)} {cases} END * (10000 + {_below(mantissa, 90000)}) / 10000)"


_SOMEONE = "n / 50 + 1 - LEAST(n / 50 + 1, 1000) + MOD({draw}, LEAST(n / 50 + 1, 1000) + 10) + 1000"
_SELLER = f"""CASE WHEN {_below("hot", 4)} > 0 THEN n / 5000 * 100 + 1000
  ELSE {_SOMEONE.format(draw=_draw("seller"))} END"""
_BIDDER = f"""CASE WHEN {_below("hot", 4)} > 0 THEN n / 5000 * 100 + 1001
  ELSE {_SOMEONE.format(draw=_draw("bidder"))} END"""
_LATEST = "(n / 50 * 3 + 2)"
_OLDEST = f"GREATEST({_LATEST} - 100, 0)"
_AUCTION = f"""CASE WHEN {_below("hot", 2)} = 0 THEN {_LATEST} / 100 * 100 + 1000
  ELSE {_OLDEST} + MOD({_draw("auction")}, {_LATEST} - {_OLDEST} + 11) + 1000 END"""

PERSON = f"""
SELECT n / 50 + 1000 AS id,
  {_one_of("first name", FIRST_NAMES)} || ' ' || {_one_of("last name", LAST_NAMES)} AS name,
  {_one_of("city", CITIES)} AS city, {_one_of("state", STATES)} AS state, ts AS date_time
FROM numbers WHERE MOD(n, 50) = 0"""

AUCTION = f"""
SELECT n / 50 * 3 + MOD(n, 50) + 999 AS id, {_text("5 + MOD({}, 16)")} AS item_name,
  {_text("10 + {} * 9 / 10")} AS description, {_price("length", "price")} AS initial_bid,
  {_price("length", "price")} + {_price("price", "scale")} AS reserve, ts AS date_time,
  TO_TIMESTAMP_LTZ(1767225600001 + n * 1000 / {{event_rate}}
    + {_below("length", "{longest}")}, 3) AS expires,
  {_SELLER} AS seller, {_below("category", 5)} + 10 AS category, {_text("304 + {} * 3 / 2")} AS extra
FROM numbers WHERE MOD(n, 50) BETWEEN 1 AND 3"""

BID = f"""
SELECT {_AUCTION} AS auction, {_BIDDER} AS bidder, {_price("price", "scale")} AS price,
  {_one_of("length", CHANNELS)} AS channel,
  SUBSTRING('{URL}', 1, 40 + {_below("length", 37)}) AS url, ts AS date_time,
  {_text("54 + MOD({}, 28)")} AS extra
FROM numbers WHERE MOD(n, 50) > 3"""

#: (orders, payments) by kind: the key, the place among the rows of its side, and the time.
SIDES = {
    "window": ("MOD(n / 2 * 7919 + 13, {keys})", "MOD(n / 2 * 7907 + 29, {keys})"),
    "interval": ("n / 2", "n / 2 / {keys} * {keys} + MOD(n / 2 * 7919 + 13, {keys})"),
    "versioned": ("MOD(n / 2 * 7919 + 13, {keys})", "MOD(n / 2 * 7907 + 29, {keys})"),
}
#: The last version of each key by event time: what Flink takes for a table with versions.
RATES = """
SELECT id, price, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS place FROM payments)
WHERE place = 1"""


def views(kind: str, keys: int, event_rate: int) -> dict[str, str]:
    """The views of a kind by name, in the order in which they are needed."""
    if kind in SIDES:
        left, right = (key.format(keys=keys) for key in SIDES[kind])
        orders = f"SELECT {left} AS id, n / 2 AS amount, ts FROM numbers WHERE MOD(n, 2) = 0"
        payments = f"SELECT {right} AS id, n / 2 AS price, ts FROM numbers WHERE MOD(n, 2) = 1"
        return {"orders": orders, "payments": payments, "rates": RATES}
    longest = max(2 * EVENTS_PER_HORIZON * 1000 // event_rate, 1)
    auction = AUCTION.format(event_rate=event_rate, longest=longest)
    return {"person": PERSON, "auction": auction, "bid": BID}


_TUMBLE = "TABLE(TUMBLE(TABLE {table}, DESCRIPTOR({time}), INTERVAL '10' SECOND))"
_Q8_SIDE = f"""SELECT {{columns}}, window_start AS starttime, window_end AS endtime
  FROM {_TUMBLE} GROUP BY {{columns}}, window_start, window_end"""

QUERIES = {
    "window": f"""
SELECT l.id, l.amount, r.price, l.window_start, l.window_end
FROM (SELECT * FROM {_TUMBLE.format(table="orders", time="ts")}) l
JOIN (SELECT * FROM {_TUMBLE.format(table="payments", time="ts")}) r
ON l.id = r.id AND l.window_start = r.window_start AND l.window_end = r.window_end""",
    "interval": """
SELECT o.id, o.amount, p.price, o.ts, CAST(p.ts AS TIMESTAMP(3)) AS ts_right
FROM orders o JOIN payments p ON o.id = p.id
AND p.ts BETWEEN o.ts - INTERVAL '1' MINUTE AND o.ts + INTERVAL '1' MINUTE""",
    "versioned": """
SELECT o.id, o.amount, r.price, o.ts
FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.id = r.id""",
    "q3": f"""
SELECT P.name, P.city, P.state, A.id
FROM auction AS A INNER JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND P.state IN {STATES_OF_Q3}""",
    "q8": f"""
SELECT P.id, P.name, P.starttime AS window_start
FROM ({_Q8_SIDE.format(columns="id, name", table="person", time="date_time")}) P
JOIN ({_Q8_SIDE.format(columns="seller", table="auction", time="date_time")}) A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
    "q9": """
SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
  auction, bidder, price, bid_date_time, bid_extra
FROM (
  SELECT A.*, B.auction, B.bidder, B.price, B.date_time AS bid_date_time, B.extra AS bid_extra,
    ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time ASC) AS rownum
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires)
WHERE rownum <= 1""",
    "q20": """
SELECT auction, bidder, price, channel, url, B.date_time AS bid_date_time, B.extra AS bid_extra,
  item_name, description, initial_bid, reserve, A.date_time, expires, seller, category, A.extra
FROM bid AS B INNER JOIN auction AS A ON B.auction = A.id
WHERE A.category = 10""",
}
#: Kinds whose results change.
WITH_CHANGES = ("q9",)
