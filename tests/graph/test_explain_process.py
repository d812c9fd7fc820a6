"""How process steps are shown."""

from collections.abc import Iterator

import headrace as hr


class Counts(hr.KeyedProcessFunction):
    seen: hr.state.Value[int] = hr.state.FOREVER

    def process_element(self, value, ctx) -> Iterator[int]: ...


class Match(hr.KeyedCoProcessFunction):
    def process_element1(self, value, ctx) -> Iterator[int]: ...

    def process_element2(self, value, ctx) -> Iterator[int]: ...


class Check(hr.KeyedBroadcastProcessFunction):
    rules: hr.state.Broadcast[str, int]
    seen: hr.state.Map[str, int] = hr.state.FOREVER

    def process_element(self, value, ctx) -> Iterator[int]: ...

    def process_broadcast_element(self, value, ctx) -> Iterator[int]: ...


class Dealt(hr.ProcessFunction):
    buffer: hr.state.OperatorList[int]

    def process_element(self, value, ctx) -> Iterator[int]: ...


def test_a_process_step_shows_function_keys_states_and_order(env, bids, sink):
    keyed = bids.key_by("auction", "channel")
    keyed.process(Counts(), ordered=True, uid="counts").sink_to(sink)
    bids.connect(bids).key_by("auction", "price").process(Match(), uid="match").sink_to(sink)
    beside = bids.broadcast()
    keyed.connect(beside).process(Check(), uid="check").sink_to(sink)
    bids.process(Dealt(), uid="dealt").sink_to(sink)
    keyed.reduce(max, uid="top").sink_to(sink)
    text = env.explain()
    rows = {line.split()[0]: " ".join(line.split()) for line in text.splitlines() if line.strip()}
    shown = {
        "counts": "Counts by auction, channel, in order of time: seen (value) <- bids",
        "match": "Match by auction and price <- bids, bids",
        "check": (
            "Check by auction, channel, beside all of the second:"
            " rules (broadcast), seen (map) <- bids, bids"
        ),
        "dealt": "Dealt dealt: buffer (operator list) <- bids",
        "top": "reduce(max) by auction, channel: row (reducing) <- bids",
    }
    for uid, about in shown.items():
        assert rows[uid].endswith(about), rows[uid]
    assert "match by auction and price; check by auction, channel, beside all" in text
