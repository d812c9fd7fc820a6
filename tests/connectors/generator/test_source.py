"""The Nexmark source: values follow from the seed and the row's number alone."""

import itertools
import math
import pickle
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.generator import Nexmark
from headrace.endpoints import Source
from headrace.errors import BuildError, SchemaError
from tests.examples import examples

START = datetime(2025, 1, 1, tzinfo=UTC)
NOWHERE = Path()


def rows(source: Source, start: int, end: int, partition: str = "0") -> pa.Table:
    batches = [read.batch for read in source.read(partition, start, end, NOWHERE)]
    return pa.Table.from_batches(batches, source.schema)


def times_us(source: Source, count: int) -> np.ndarray:
    return rows(source, 0, count)["date_time"].cast(pa.int64()).to_numpy()


@pytest.mark.parametrize("kind", ["bids", "auctions", "persons"])
@examples(20)
@given(cuts=st.lists(st.integers(0, 500), max_size=5))
def test_any_cut_of_a_range_reads_the_same_rows(kind: str, cuts: list[int]) -> None:
    stream = Nexmark(events=30_000, disorder=timedelta(seconds=1), late=0.05)
    source = getattr(stream, kind)()
    places = [0, *sorted(cuts), 500]
    parts = [rows(source, a, b) for a, b in itertools.pairwise(places)]
    assert pa.concat_tables(parts).equals(rows(source, 0, 500))


def test_known_rows_never_change() -> None:
    # Checkpoints refer to rows by number: another mixing function would silently change history.
    stream = Nexmark(events=1_000_000, disorder=timedelta(seconds=3), late=0.001)
    bids = rows(stream.bids(("auction", "bidder", "price", "date_time")), 500_000, 500_002)
    whole = bids.set_column(3, "date_time", bids["date_time"].cast(pa.int64()))
    assert [tuple(row.values()) for row in whole.to_pylist()] == [
        (33600, 11192, 7067, 1735689603513000),
        (33618, 11801, 511692, 1735689603363000),
    ]


@pytest.mark.parametrize(("kind", "count"), [("persons", 3), ("auctions", 8), ("bids", 92)])
def test_every_kind_has_its_share_of_the_events(kind: str, count: int) -> None:
    source = getattr(Nexmark(events=103), kind)()
    assert source.enumerator(NOWHERE).spans()["0"].end == count


def test_partitions_hold_every_row_once_in_order(tmp_path: Path) -> None:
    whole = rows(Nexmark(events=1_001).bids(), 0, 920)
    dealt = Nexmark(events=1_001, partitions=3).bids()
    spans = dealt.enumerator(tmp_path).spans()
    parts = {name: rows(dealt, 0, span.end, name).to_pylist() for name, span in spans.items()}
    in_turn = [parts[str(n % 3)][n // 3] for n in range(whole.num_rows)]
    assert in_turn == whole.to_pylist()
    assert all(span.finished for span in spans.values())


def test_offsets_are_the_positions() -> None:
    (read,) = Nexmark(events=10_000, partitions=2).bids().read("1", 17, 30, NOWHERE)
    assert read.offsets.tolist() == list(range(17, 30))
    assert read.partition == "1"


def test_without_disorder_event_time_never_falls_and_follows_the_rate() -> None:
    times = times_us(Nexmark(events=100_000, event_rate=10_000).bids(), 92_000)
    assert (np.diff(times) >= 0).all()
    elapsed = datetime.fromtimestamp(times[-1] / 1e6, UTC) - START
    assert elapsed == timedelta(seconds=9, milliseconds=999)
    assert (times % 1000 == 0).all()


@examples(20)
@given(disorder_us=st.integers(1, 5_000_000))
def test_disorder_stays_below_its_bound(disorder_us: int) -> None:
    stream = Nexmark(events=5_000, event_rate=1_000, disorder=timedelta(microseconds=disorder_us))
    times = times_us(stream.bids(), 4_000)
    behind = np.maximum.accumulate(times) - times
    assert behind.max() <= disorder_us
    if disorder_us > 1_000_000:
        assert behind.max() > disorder_us // 2


def test_late_rows_have_their_share_and_their_delay() -> None:
    on_time = times_us(Nexmark(events=200_000).bids(), 100_000)
    behind = on_time - times_us(Nexmark(events=200_000, late=0.01).bids(), 100_000)
    late = behind[behind > 0]
    assert 800 < len(late) < 1_200
    assert late.min() >= 5_000_000
    assert late.max() <= 60_000_000


def test_values_have_the_distributions_of_nexmark() -> None:
    bids = rows(Nexmark(events=110_000).bids(), 0, 100_000)
    price = bids["price"].to_numpy()
    assert price.min() >= 100
    assert price.max() <= 100_000_000
    thirds = [np.mean(price < 1e4), np.mean((price >= 1e4) & (price < 1e6)), np.mean(price >= 1e6)]
    assert all(math.isclose(share, 1 / 3, abs_tol=0.01) for share in thirds)
    hot = np.mean(bids["auction"].to_numpy() % 100 == 0)
    assert math.isclose(hot, 0.5, abs_tol=0.02)
    bidders = bids["bidder"].to_numpy()
    assert math.isclose(np.mean(bidders % 100 == 1), 0.75, abs_tol=0.02)
    channels = Counter(bids["channel"].to_pylist())
    assert math.isclose(channels["Google"] / 100_000, 0.125, abs_tol=0.01)
    assert len(channels) > 9_000


def test_bids_name_auctions_and_persons_that_exist_or_soon_will() -> None:
    bids = rows(Nexmark(events=500_000).bids(("auction", "bidder")), 400_000, 401_000)
    cycle = np.arange(400_000, 401_000) // 46
    auctions, bidders = (bids[name].to_numpy() - 1000 for name in ("auction", "bidder"))
    assert (auctions >= 0).all()
    assert (auctions <= cycle * 3 + 2 + 10).all()
    assert (bidders >= 0).all()
    assert (bidders <= cycle + 1 + 10).all()


def test_auctions_end_after_they_begin_and_are_sold_by_persons() -> None:
    auctions = rows(Nexmark(events=100_000, event_rate=10_000).auctions(), 0, 6_000)
    length = (
        auctions["expires"].cast(pa.int64()).to_numpy()
        - auctions["date_time"].cast(pa.int64()).to_numpy()
    )
    assert length.min() >= 1_000
    assert length.max() <= 2 * 166_600 + 1_000
    assert set(auctions["category"].to_pylist()) == {10, 11, 12, 13, 14}
    assert (auctions["reserve"].to_numpy() > auctions["initial_bid"].to_numpy()).all()
    assert auctions["id"].to_pylist() == list(range(1000, 7000))


def test_persons_look_like_persons() -> None:
    persons = rows(Nexmark(events=50_000).persons(), 0, 1_000).to_pylist()
    assert [person["id"] for person in persons] == list(range(1000, 2000))
    assert len({person["name"] for person in persons}) == 99
    assert {person["state"] for person in persons} == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    assert len({person["credit_card"] for person in persons}) == 1_000


def test_average_sizes_are_those_of_nexmark() -> None:
    stream = Nexmark(events=200_000)
    for kind, size in (("bids", 100), ("auctions", 500), ("persons", 200)):
        table = rows(getattr(stream, kind)(), 0, 3_000)
        # As in the original, a bid's channel and address do not count.
        counted = [name for name in table.column_names if name not in ("url", "channel")]
        found = table.select(counted).nbytes / 3_000
        assert math.isclose(found, size, rel_tol=0.15), kind


def test_a_seed_is_a_stream_of_its_own() -> None:
    first, second = (rows(Nexmark(10_000, seed).bids(), 0, 1_000) for seed in (1, 2))
    assert not first["price"].equals(second["price"])


def test_chosen_columns_hold_what_all_columns_hold() -> None:
    stream = Nexmark(events=10_000)
    some = rows(stream.bids(("price", "channel")), 0, 500)
    assert some.equals(rows(stream.bids(), 0, 500).select(["price", "channel"]))


def test_unknown_column_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(SchemaError, match=r"no column 'prise'.*auction, bidder, price"):
        Nexmark(events=1).bids(("prise",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"events": -1}, "events"),
        ({"events": 1.5}, "events"),
        ({"events": 1, "event_rate": 0}, "event_rate"),
        ({"events": 1, "partitions": 0}, "partitions"),
        ({"events": 1, "late": 1.5}, "late"),
        ({"events": 1, "late": math.nan}, "late"),
        ({"events": 1, "disorder": timedelta(seconds=-1)}, "disorder"),
        ({"events": 1, "disorder": 3}, "disorder"),
        ({"events": 1, "rate_limit": 0}, "rate_limit"),
        ({"events": 1, "start": datetime(2025, 1, 1)}, "time zone"),
    ],
)
def test_options_that_cannot_work_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BuildError, match=message):
        Nexmark(**options)


def test_rate_limit_brings_rows_forth_by_the_clock_and_over_a_restart(tmp_path: Path) -> None:
    now = [1_000_000_000]
    source = Nexmark(events=1_000, rate_limit=100.0).bids()
    enumerator = source.enumerator(tmp_path, clock=lambda: now[0])
    assert enumerator.spans()["0"].end == 0
    now[0] += 2_500_000
    assert enumerator.spans()["0"].end == 250
    now[0] -= 1_000_000
    assert enumerator.spans()["0"].end == 250
    now[0] += 3_000_000
    again = source.enumerator(tmp_path, clock=lambda: now[0])
    assert again.spans()["0"].end == 450
    now[0] += 100_000_000
    assert (again.spans()["0"].end, again.spans()["0"].finished) == (920, True)


def test_an_endless_stream_never_finishes() -> None:
    span = Nexmark(events=None).bids().enumerator(NOWHERE).spans()["0"]
    assert not span.finished
    far = rows(Nexmark(events=None).bids(), span.end - 2, span.end)
    assert far.num_rows == 2


def test_the_signature_holds_what_values_follow_from_and_nothing_else() -> None:
    signature = Nexmark(events=10).bids().signature()
    assert Nexmark(events=99, rate_limit=5).bids(("price",)).signature() == signature
    for other in (Nexmark(10, 8), Nexmark(10, late=0.1), Nexmark(10, partitions=2)):
        assert other.bids().signature() != signature


def test_a_source_travels_by_pickle() -> None:
    source = Nexmark(events=10_000).bids()
    copy = pickle.loads(pickle.dumps(source))
    assert rows(copy, 5, 50).equals(rows(source, 5, 50))
