"""Headrace joins two streams, state checkpointed and results published every epoch.

    python headrace_joins.py KIND ROWS KEYS EVENT_RATE CORES files|discard|DIRECTORY [steady STATE_ROWS]

The clock runs from the end of epoch 0, when Spark and its workers are up, until the job has ended; the rows of epoch 0
are not counted. Results are written to Parquet files exactly once, or discarded as Flink's are; with a directory
they stay there to be compared. `steady` never ends its input and measures epochs of ROWS rows when each side has
STATE_ROWS rows in its state: in mid-stream where rows leave the state as they come, or from that moment on where it grows.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from auction_house import STATES_OF_Q3
from contenders.discard import Discard
from contenders.headrace_auction_house import AUCTION, BID, PERSON, events, schema_of
from contenders.headrace_join_rows import ORDER, PAYMENT, SIDES, sides

import headrace as hr
from headrace.connectors import files, generator

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
WARMING_EPOCHS = 10
STEADY_EPOCHS = 10
#: The state of a regular join grows with every row: fewer epochs, before it is another one.
GROWING_EPOCHS = 4
#: How long a row stays in the state, with the delay of the watermark.
STAY_S = {"window": 12, "interval": 62, "versioned": 2}

_AUCTION = (
    "item_name description initial_bid reserve date_time expires seller category extra".split()
)
#: What the queries of the auction house look at.
LOOKED_AT = {
    "q3": "id name city state seller category".split(),
    "q8": "id name seller".split(),
    "q9": ["id", *(n for n in _AUCTION if n != "date_time"), "auction", "bidder", "price"],
    "q20": [
        "id", *(n for n in _AUCTION if n != "date_time"),
        "auction", "bidder", "price", "channel", "url",
    ],
}  # fmt: skip


def main(kind: str, numbers: list[int], sink: str, steady: int | None) -> None:
    """Run the pipeline once and print what was measured as one line of JSON."""
    home = Path(tempfile.mkdtemp(prefix="headrace-benchmark-"))
    out = {"files": home / "out", "discard": None}.get(sink, Path(sink))
    # To be compared, rows of one answer should come in different epochs.
    cut = numbers[0] if steady else None if out in (None, home / "out") else numbers[0] // 20
    try:
        job = _pipeline(kind, numbers, home, out, hr.Epochs(rows=cut), steady).start()
        if steady:
            found = _in_mid_stream(job, kind, numbers[0], event_rate=numbers[2], state=steady)
        else:
            found = _to_the_end(job)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if job.summary.late or job.summary.dead:
        sys.exit(f"rows are in order, but some were late or dead: {job.summary}")
    print(json.dumps(found))


def _to_the_end(job: hr.JobHandle) -> dict[str, float]:
    job.await_epoch(0)
    began, before = time.monotonic(), job.summary.rows
    job.wait()
    return {"rows": job.summary.rows - before, "seconds": time.monotonic() - began}


def _in_mid_stream(
    job: hr.JobHandle, kind: str, epoch_rows: int, *, event_rate: int, state: int
) -> dict[str, float]:
    first, epochs = _warming_rows(kind, epoch_rows, event_rate, state) // epoch_rows, STEADY_EPOCHS
    if kind == "regular":
        epochs = GROWING_EPOCHS
    job.await_epoch(first - 1)
    began, before = time.monotonic(), job.summary.rows
    job.await_epoch(first + epochs - 1)
    found = {"rows": job.summary.rows - before, "seconds": time.monotonic() - began}
    job.stop()
    return found


def _warming_rows(kind: str, epoch_rows: int, event_rate: int, state: int) -> int:
    """How many come before the clock begins: the state is full then, and as much goes as comes."""
    least = WARMING_EPOCHS * epoch_rows
    if kind in STAY_S:
        needed = STAY_S[kind] * event_rate
    else:
        # Every key of both sides has come, twice for `latest`.
        needed = 2 * state if kind == "regular" else 4 * state
    return max(least, -(-needed // epoch_rows) * epoch_rows)


def _pipeline(
    kind: str,
    numbers: list[int],
    home: Path,
    out: Path | None,
    epochs: hr.Epochs,
    steady: int | None,
) -> hr.Environment:
    cores = numbers[3]
    env = hr.Environment(
        "benchmark",
        checkpoint=home / "checkpoint",
        shards=cores,
        master=f"local[{cores}]",
        epochs=epochs,
    )
    source = _source(kind, numbers, steady)
    at = "date_time" if kind in LOOKED_AT else "ts"
    strategy = hr.WatermarkStrategy.bounded_out_of_orderness(SECOND).with_timestamps(at)
    made = env.from_source(source, watermarks=strategy, uid="events")
    JOINS[kind](made).sink_to(Discard() if out is None else files.FileSink(out), uid="results")
    return env


def _source(kind: str, numbers: list[int], steady: int | None) -> generator.Function:
    rows, keys, event_rate, cores = numbers
    limit = None if steady else rows
    if kind in LOOKED_AT:
        names = LOOKED_AT[kind]
        maker, schema = events(names, event_rate), schema_of(names)
    else:
        thin = {}
        if kind == "regular" and steady:
            warming = _warming_rows(kind, rows, event_rate, steady)
            thin = {"thin_rows": warming, "step": warming // (2 * steady)}
        maker, schema = sides(kind, keys, event_rate, **thin), SIDES
    return generator.Function(schema, maker, rows=limit, partitions=cores)


def _orders(made: hr.Stream) -> hr.Stream:
    return made.filter(hr.col("side") == ORDER).select("id", "ts", amount=hr.col("number"))


def _payments(made: hr.Stream) -> hr.Stream:
    return made.filter(hr.col("side") == PAYMENT).select("id", "ts", price=hr.col("number"))


def _window(made: hr.Stream) -> hr.Stream:
    window = hr.windows.Tumbling(10 * SECOND)
    return _orders(made).window_join(_payments(made), window, on="id", uid="joined")


def _interval(made: hr.Stream) -> hr.Stream:
    near = _orders(made).interval_join(_payments(made), on="id")
    return near.between(-MINUTE, MINUTE, uid="joined")


def _versioned(made: hr.Stream) -> hr.Stream:
    return _orders(made).join_versioned(_payments(made), on="id", uid="joined")


def _regular(made: hr.Stream) -> hr.Stream:
    return _orders(made).join(_payments(made), on="id", forever=True, uid="joined")


def _latest(made: hr.Stream) -> hr.Stream:
    orders = _orders(made).key_by("id").last(forever=True, uid="orders")
    payments = _payments(made).key_by("id").last(forever=True, uid="payments")
    return orders.join(payments, on="id", forever=True, uid="joined")


def _persons(made: hr.Stream) -> hr.Stream:
    return made.filter(hr.col("event_type") == PERSON)


def _auctions(made: hr.Stream) -> hr.Stream:
    return made.filter(hr.col("event_type") == AUCTION)


def _q3(made: hr.Stream) -> hr.Stream:
    auctions = _auctions(made).filter(hr.col("category") == 10).select("id", "seller")
    persons = _persons(made).filter(hr.col("state").is_in(STATES_OF_Q3))
    sellers = persons.select("name", "city", "state", seller=hr.col("id"))
    known = sellers.key_by("seller").first(forever=True, uid="persons")
    joined = auctions.join(known, on="seller", forever=True, uid="joined")
    return joined.select("name", "city", "state", "id")


def _q8(made: hr.Stream) -> hr.Stream:
    persons, auctions = _persons(made).select("id", "name"), _auctions(made).select("seller")
    window = hr.windows.Tumbling(10 * SECOND)
    return persons.window_join(
        auctions, window, left_on="id", right_on="seller", how="semi", uid="joined"
    )


def _bids(made: hr.Stream, *names: str) -> hr.Stream:
    bids = made.filter(hr.col("event_type") == BID)
    return bids.select(
        "auction", "bidder", "price", *names,
        bid_date_time=hr.col("date_time"), bid_extra=hr.col("extra"),
    )  # fmt: skip


def _q9(made: hr.Stream) -> hr.Stream:
    auctions = _auctions(made).select("id", *_AUCTION)
    known = auctions.key_by("id").first(forever=True, uid="auctions")
    offers = known.join(
        _bids(made),
        left_on="id",
        right_on="auction",
        where=hr.col("bid_date_time").between(hr.col("date_time"), hr.col("expires")),
        forever=True,
        uid="joined",
    )
    return offers.key_by("id").top(
        ["price", "bid_date_time"], descending=[True, False], forever=True, uid="winning"
    )


def _q20(made: hr.Stream) -> hr.Stream:
    auctions = _auctions(made).filter(hr.col("category") == 10).select("id", *_AUCTION)
    known = auctions.key_by("id").first(forever=True, uid="auctions")
    bids = _bids(made, "channel", "url")
    return bids.join(known, left_on="auction", right_on="id", forever=True, uid="joined")


JOINS: dict[str, Callable[[hr.Stream], hr.Stream]] = {
    "window": _window,
    "interval": _interval,
    "versioned": _versioned,
    "regular": _regular,
    "latest": _latest,
    "q3": _q3,
    "q8": _q8,
    "q9": _q9,
    "q20": _q20,
}


if __name__ == "__main__":
    steady_rows = int(sys.argv[8]) if sys.argv[7:] == ["steady", *sys.argv[8:9]] else None
    main(sys.argv[1], [int(a) for a in sys.argv[2:6]], sys.argv[6], steady_rows)
