"""The nodes of joins: steps with several inputs whose rows meet by key.

Input 0 is the left, input 1 the right; only a regular join may have more. A side is *preserved* if its rows come out
where they find no partner. Late rows of the left go to the output `late`, those of the right to `late_right`, both as
they came. Deliberately absent: what is kept of rows, which `_runtime.joins` knows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from headrace._graph.nodes import LATE, LATE_RIGHT, CodeStep, Node, Port
from headrace.endpoints import Json
from headrace.expressions import Expression
from headrace.lookups import FileTable, LookupFunction
from headrace.windows import Window

__all__ = [
    "AsOfJoin",
    "BroadcastJoin",
    "Direction",
    "How",
    "IntervalJoin",
    "JoinColumn",
    "JoinStep",
    "Keep",
    "KeepRow",
    "LookupJoin",
    "RegularJoin",
    "TopPairJoin",
    "WindowExtreme",
    "WindowJoin",
]

How: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
Direction: TypeAlias = Literal["backward", "forward", "nearest"]

_PRESERVED: dict[str, tuple[int, ...]] = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}


@dataclass(frozen=True)
class JoinColumn:
    """A column of the result: its name, and (input, column) it comes from; of several, the first that is there."""

    name: str
    origins: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Keep:
    """Which row of a key is kept of an input: the first that came, the last, or the best by columns in order."""

    rule: Literal["first", "last", "top"]
    by: tuple[str, ...] = ()
    descending: tuple[bool, ...] = ()

    def __str__(self) -> str:
        order = [
            f"{name} descending" if down else name
            for name, down in zip(self.by, self.descending, strict=True)
        ]
        return f"{self.rule} row" + (f" by {', '.join(order)}" if order else "")


@dataclass(frozen=True, kw_only=True)
class JoinStep(Node):
    """What all joins behind a shuffle have."""

    verb = "join"
    keyed = True
    #: The key columns of each input, of equal types.
    keys: tuple[tuple[str, ...], ...]
    #: The columns of each input.
    input_schemas: tuple[pa.Schema, ...]
    how: How = "inner"
    columns: tuple[JoinColumn, ...]
    on_late: Literal["side_output", "drop"] = "side_output"

    def preserves(self, side: int) -> bool:
        """Whether rows of this input come out where they find no partner."""
        return side in _PRESERVED.get(self.how, ())

    def output_schema(self, output: str) -> pa.Schema:
        """Late rows keep the columns that they came with."""
        if output in (LATE, LATE_RIGHT):
            return self.input_schemas[output == LATE_RIGHT]
        return super().output_schema(output)

    @property
    def emits_changes(self) -> bool:
        """Whether results may be withdrawn."""
        return False

    def signature(self) -> dict[str, Json]:
        """What else of it a checkpoint depends on, as plain JSON."""
        return {}

    def __str__(self) -> str:
        """What it is, in a few words, for `explain`."""
        return "join"


@dataclass(frozen=True, kw_only=True)
class IntervalJoin(JoinStep):
    """Pairs with left + lower <= right <= left + upper, in event time."""

    lower_us: int
    upper_us: int

    def signature(self) -> dict[str, Json]:
        """Rows that another interval would still need are gone."""
        return {"between_us": [self.lower_us, self.upper_us]}

    def __str__(self) -> str:
        return f"interval join between {_signed(self.lower_us)} and {_signed(self.upper_us)}"


@dataclass(frozen=True, kw_only=True)
class WindowJoin(JoinStep):
    """Pairs of one aligned window, when it is over."""

    window: Window
    lateness_us: int = 0

    def signature(self) -> dict[str, Json]:
        """Rows are kept by pane."""
        return {"window": self.window.signature(), "lateness_us": self.lateness_us}

    def __str__(self) -> str:
        return f"join in windows {self.window}"

    @property
    def emits_changes(self) -> bool:
        """A row that was shown alone may find its partner later."""
        return self.lateness_us > 0 and self.how in _PRESERVED


@dataclass(frozen=True, kw_only=True)
class WindowExtreme(WindowJoin):
    """The rows that have the greatest or least value of their key and window: a semi join with an aggregate of itself."""

    column: str
    greatest: bool

    def signature(self) -> dict[str, Json]:
        """Rows that another column would prefer are gone."""
        return {**super().signature(), "column": self.column, "greatest": self.greatest}

    def __str__(self) -> str:
        return f"join in windows {self.window} with its {'greatest' if self.greatest else 'least'} '{self.column}'"


@dataclass(frozen=True, kw_only=True)
class AsOfJoin(JoinStep):
    """Each left row beside the right row of its key that is nearest in event time."""

    direction: Direction = "backward"
    tolerance_us: int | None = None
    exact: bool = True
    #: The right input has a column `change`, and a "-D" ends its key from there on.
    versions_end: bool = False

    def signature(self) -> dict[str, Json]:
        """Rows that a longer wait would need are gone."""
        return {
            "direction": self.direction,
            "tolerance_us": self.tolerance_us,
            "versions end": self.versions_end,
        }

    def __str__(self) -> str:
        within = (
            ""
            if self.tolerance_us is None
            else f" within {timedelta(microseconds=self.tolerance_us)}"
        )
        return f"{self.direction} as-of join{within}"

    @property
    def wait_us(self) -> int:
        """How long behind its time a left row waits for what may still be nearer."""
        return 0 if self.direction == "backward" else self.tolerance_us or 0


@dataclass(frozen=True, kw_only=True)
class RegularJoin(JoinStep):
    """All pairs of all that ever came, as changes."""

    #: Which inputs have a column `change`, with rows that withdraw others.
    changing: tuple[bool, ...]
    #: What is kept of each input; None: all of it.
    keeps: tuple[Keep | None, ...]
    #: How long rows of each input are kept; None: for ever.
    ttls_us: tuple[int | None, ...]
    #: True of pairs; for inner joins.
    condition: Expression | None = None

    def signature(self) -> dict[str, Json]:
        """What is kept of each input; how long it lives may change."""
        return {
            "changing": list(self.changing),
            "keeps": [None if keep is None else str(keep) for keep in self.keeps],
            "ends": [ttl is not None for ttl in self.ttls_us],
        }

    def spends(self, side: int) -> bool:
        """Whether a row of an input need not be kept once it met the others: each has its one row of a key for good."""
        others = [other for other in range(len(self.inputs)) if other != side]
        unique = all(
            (keep := self.keeps[other]) is not None
            and keep.rule == "first"
            and self.ttls_us[other] is None
            for other in others
        )
        if any(self.changing) or self.keeps[side] is not None or not others:
            return False
        if self.how in ("semi", "anti"):
            # One partner decides, and nothing takes it back.
            return side == 0
        return unique and (self.how == "inner" or (self.how == "left" and side == 0))

    def __str__(self) -> str:
        kept = [f"the {keep} of {side}" for side, keep in enumerate(self.keeps) if keep is not None]
        condition = "" if self.condition is None else f" where {self.condition!r}"
        return "join" + (f" keeping {', '.join(kept)}" if kept else "") + condition

    @property
    def emits_changes(self) -> bool:
        """Whether anything can be withdrawn: rows of an input, or a row of nulls that stood for one."""
        return (
            any(self.changing)
            or any(keep is not None and keep.rule != "first" for keep in self.keeps)
            or self.how in _PRESERVED
        )


@dataclass(frozen=True, kw_only=True)
class KeepRow(RegularJoin):
    """One row of each key: a join of one input with nothing."""

    verb = "keep"

    def __str__(self) -> str:
        return f"the {self.keeps[0]}"


@dataclass(frozen=True, kw_only=True)
class TopPairJoin(RegularJoin):
    """The best pair of each key, where one input has one row of it: an inner join and a `top` behind it in one."""

    errors_behind = True
    #: By columns of the result.
    top: Keep
    #: The columns that pairs are rivals by: those of the key and, perhaps, of the one row. A null in one makes pairs dead letters.
    rivals_by: tuple[str, ...]

    @property
    def unique(self) -> int:
        """The input of which one row of each key is kept."""
        return 0 if self.keeps[0] is not None else 1

    @property
    def emits_changes(self) -> bool:
        """A better pair replaces the one before it."""
        return True

    def signature(self) -> dict[str, Json]:
        """Rows that another order or condition would prefer are gone."""
        return {**super().signature(), "top": str(self.top), "condition": repr(self.condition)}

    def __str__(self) -> str:
        return f"{super().__str__()}, the {self.top}"


@dataclass(frozen=True, kw_only=True)
class BroadcastJoin(JoinStep):
    """Each left row beside the row of its key in a table that every shard has."""

    #: The table has a column `change`, and a "-D" removes a row of it.
    changing: bool = False

    def __str__(self) -> str:
        return "join beside all of the second"

    @property
    def time_inputs(self) -> tuple[Port, ...]:
        """A table that seldom changes must not hold back time."""
        return self.inputs[:1]


@dataclass(frozen=True, kw_only=True)
class LookupJoin(CodeStep):
    """Each row beside what a table outside has for its key."""

    verb = "join_lookup"
    #: A `LookupFunction`, a table of files, or a function of a list of keys.
    table: LookupFunction[Any, Any] | FileTable | Callable[[list[Any]], Mapping[Any, Any]]
    keys: tuple[str, ...]
    how: Literal["left", "inner"] = "left"
    #: The columns of the table's rows, and those of the result.
    table_schema: pa.Schema
    columns: tuple[JoinColumn, ...]

    @property
    def many(self) -> bool:
        """Whether a row may become several."""
        return isinstance(self.table, FileTable)

    def __str__(self) -> str:
        name = getattr(self.table, "__name__", None) or repr(self.table)
        return f"join with {name}"


def _signed(us: int) -> str:
    """A distance as text; what lies before is "-0:00:02", where Python says "-1 day, 23:59:58"."""
    return f"{'-' if us < 0 else ''}{timedelta(microseconds=abs(us))}"
