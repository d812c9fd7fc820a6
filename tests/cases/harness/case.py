"""A golden case as data: a pipeline, its input streams and its expected output, each table a text.

    CASE = Case(
        inputs={"bids": table},                                 a table for each parameter of the pipeline
        pipeline=lambda bids: bids.window_all(...).aggregate(total=hr.sum("price")),
        expected=table,                                         only its columns are compared
    )

    at: time | price: int           the first column of type `time` is the timestamp
    08:05    | 4
    watermark 08:06                 no row before 08:06 follows
    08:07    | 2
    ---                             every run ends an epoch here, in all streams
    08:11    | 3

A stream without `watermark` lines gets watermarks for which no row of it is late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Final, Literal, get_args

from tests.cases.harness.tables import Expected, Input, parse_expected, parse_input

__all__ = ["MAIN", "Case", "CaseError", "Respect"]

#: In which respect an output may depend on where epochs are cut.
Respect = Literal["firings"]

#: The output of a pipeline that returns one stream.
MAIN: Final = "main"


class CaseError(Exception):
    """The case is not written as a case has to be."""


@dataclass(frozen=True)
class Case:
    """One golden case."""

    #: The name of a stream -> its rows.
    inputs: Mapping[str, str]
    #: Gets each stream by its name; returns one stream, or several by the name of the output.
    pipeline: Callable[..., Any]
    #: The output, or each of several by name.
    expected: str | Mapping[str, str]
    _: KW_ONLY
    #: Without "firings" all rows must be the same in every run. With it the run with the fewest epochs gives exactly the
    #: expected rows; in other runs the last row of each `last_per` must be the same, `pane` and `firing` left out.
    may_differ: Collection[Respect] = ()
    #: The columns that name what fires again: keys and windows.
    last_per: tuple[str, ...] = ()
    #: Rows that are equal in these columns must be in the expected order; () orders all rows.
    ordered_per: tuple[str, ...] | None = None
    #: The answer does not depend on the order in which rows arrive, so runs may shuffle and partition them.
    any_order: bool = False
    #: "ours: ...": a known bug. The case fails until it is fixed, and then until this line is removed.
    xfail: str = ""

    def __post_init__(self) -> None:
        unknown = set(self.may_differ) - set(get_args(Respect))
        if unknown:
            raise CaseError(f"may_differ: {sorted(unknown)}, there are {get_args(Respect)}")
        if ("firings" in self.may_differ) != bool(self.last_per):
            raise CaseError("may_differ={'firings'} and last_per= belong together")
        if self.xfail and not self.xfail.startswith(("ours: ", "upstream: ", "never: ")):
            raise CaseError(f"xfail says who must act ('ours: ...'), not {self.xfail!r}")
        for columns in (self.last_per, self.ordered_per or ()):
            if not any(set(columns) <= set(output.columns) for output in self.outputs.values()):
                raise CaseError(f"no expected output has the columns {columns}")

    @cached_property
    def streams(self) -> Mapping[str, Input]:
        """The input, read."""
        return {name: parse_input(text) for name, text in self.inputs.items()}

    @cached_property
    def outputs(self) -> Mapping[str, Expected]:
        """The expected output, read."""
        texts = {MAIN: self.expected} if isinstance(self.expected, str) else self.expected
        return {name: parse_expected(text) for name, text in texts.items()}
