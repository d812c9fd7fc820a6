"""The ledger: every row that goes into a step is accounted for, in every epoch.

Counts by step: `in`, `out`, `late`, `filtered`, `dead` (dead-lettered), `held` (taken into state), and
`side:<name>` for what went to a side output. A step obeys the law of its kind:

    one     in = out + late + filtered + dead     map, filter, select, source, sink: a row is a row; split: on the
                + all sides                       main output or on one other
    many    in >= dead + filtered                 flat_map, map_batches, process, join_lookup in files: a row may become
                                                  any number
    keyed   in = held + late + dead               windows, joins: rows go into state, results are new rows;
                                                  late rows of a join's right are counted as `late_right`
    moved   in = held + dead, out = held          repartition: what goes into the shuffle comes out of it

and along every edge, what a step takes in is what those before it put out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from headrace.errors import EngineError

__all__ = ["COUNTS", "Law", "Ledger"]

COUNTS = ("in", "out", "late", "late_right", "filtered", "skipped", "dead", "held")

Law = Literal["one", "many", "keyed", "moved"]
Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Ledger:
    """Counts since the job began: uid -> name -> rows."""

    counts: Counts = field(default_factory=dict)

    def add(self, counts: Counts) -> Ledger:
        """The ledger with one more epoch, or one more task, in it."""
        total = {uid: dict(names) for uid, names in self.counts.items()}
        for uid, names in counts.items():
            mine = total.setdefault(uid, {})
            for name, rows in names.items():
                if name not in COUNTS and not name.startswith("side:"):
                    raise EngineError(
                        f"step {uid!r} counts {name!r}, which the ledger does not know"
                    )
                mine[name] = mine.get(name, 0) + rows
        return Ledger(total)

    def count(self, uid: str, name: str) -> int:
        """One number; 0 if nothing was counted."""
        return self.counts.get(uid, {}).get(name, 0)

    def problems(
        self,
        laws: Mapping[str, Law],
        edges: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    ) -> list[str]:
        """Sentences about rows that are not accounted for; empty when all are.

        `edges`: a step's uid -> the (uid, count) pairs that it takes its rows from, for example
        `{"late-sink": [("per-auction", "late")]}`.
        """
        broken = [text for uid, law in laws.items() for text in self._broken(uid, law)]
        for uid, feeds in (edges or {}).items():
            sent = sum(self.count(feeder, name) for feeder, name in feeds)
            if sent != self.count(uid, "in"):
                broken.append(f"step {uid!r} took in {self.count(uid, 'in')} of {sent} rows")
        return broken

    def _broken(self, uid: str, law: Law) -> Iterator[str]:
        taken, dead = self.count(uid, "in"), self.count(uid, "dead")
        if law == "many":
            filtered = self.count(uid, "filtered")
            if dead + filtered > taken:
                told = f" and filtered {filtered}" if filtered else ""
                yield f"step {uid!r} took in {taken} rows and dead-lettered {dead}{told}"
            return
        parts = ["held", "late", "late_right", "dead"]
        if law == "one":
            sides = [name for name in self.counts.get(uid, {}) if name.startswith("side:")]
            parts = ["out", "late", "filtered", "skipped", "dead", *sides]
        accounted = {name: self.count(uid, name) for name in parts}
        if taken != sum(accounted.values()):
            told = ", ".join(f"{rows} {name}" for name, rows in accounted.items())
            yield f"step {uid!r} took in {taken} rows, but accounts for {told}"
        held, out = self.count(uid, "held"), self.count(uid, "out")
        if law == "moved" and held != out:
            yield f"step {uid!r} sent {held} rows to other shards, and {out} came out"
