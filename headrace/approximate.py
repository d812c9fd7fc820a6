"""Approximate aggregates, from Apache DataSketches: state of bounded size for a key, whatever its rows.

Sketches of several panes, shards and epochs are merged, so windows overlap and jobs are restored as with any
other aggregate. Nulls are skipped.

    approx_quantiles        KLL. The rank of a result is off by less than 1.33 % (k=200) in 99 of 100 cases;
                            up to about k values nothing is. The sketch tosses coins: beyond that, two runs
                            over the same rows may differ within the bound.
    approx_count_distinct   HyperLogLog. Off by less than 5 % (lg_k=12) in 997 of 1000 cases; small counts
                            are exact. How the rows were divided does not show.
    approx_top              Misra-Gries. Every item that makes up more than 0.35 % (lg_k=10) of the rows is
                            known, and no count is too high by more than that; up to 768 items all is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headrace.aggregates import Aggregate, column_name
from headrace.errors import BuildError

__all__ = ["approx_count_distinct", "approx_quantile", "approx_quantiles", "approx_top"]


def approx_quantile(column: str, rank: float, *, k: int = 200) -> Aggregate:
    """The value below or at which this share of the values lies, as a float: 0.5 is the median.

    Null where there is no value. NaN is skipped. Ask for several at once with `approx_quantiles`.
    """
    options = (("rank", _rank(rank, "approx_quantile")), ("k", _whole(k, "k", 8, 65_535)))
    return Aggregate("approx_quantile", column_name(column, "approx_quantile"), options=options)


def approx_quantiles(column: str, ranks: Iterable[float], *, k: int = 200) -> Aggregate:
    """Several quantiles of a column as a list, from one sketch of at most some 3 * k values.

    Null where there is no value. NaN is skipped.
    """
    if isinstance(ranks, str | bytes) or not isinstance(ranks, Iterable):
        raise BuildError(
            f"approx_quantiles takes a list of ranks such as [0.5, 0.99], not {ranks!r}."
        )
    wanted = tuple(_rank(rank, "approx_quantiles") for rank in ranks)
    if not wanted:
        raise BuildError("approx_quantiles needs at least one rank, for example [0.5, 0.99].")
    options = (("ranks", wanted), ("k", _whole(k, "k", 8, 65_535)))
    return Aggregate("approx_quantiles", column_name(column, "approx_quantiles"), options=options)


def approx_count_distinct(column: str, *, lg_k: int = 12) -> Aggregate:
    """About how many different values a column has, from a sketch of at most 2**lg_k bytes."""
    options = (("lg_k", _whole(lg_k, "lg_k", 7, 21)),)
    return Aggregate(
        "approx_count_distinct", column_name(column, "approx_count_distinct"), options=options
    )


def approx_top(column: str, n: int = 10, *, lg_k: int = 10) -> Aggregate:
    """The most frequent values and about how often they occur: a list of `item` and `count`.

    The greatest count comes first, among equals the least item. A sketch keeps 0.75 * 2**lg_k items.
    """
    most = _whole(n, "n", 1, 2**20)
    options = (("n", most), ("lg_k", _whole(lg_k, "lg_k", 3, 24)))
    return Aggregate("approx_top", column_name(column, "approx_top"), options=options)


def _rank(rank: Any, what: str) -> float:
    if isinstance(rank, bool) or not isinstance(rank, int | float) or not 0 <= rank <= 1:
        raise BuildError(
            f"A rank of {what} lies between 0 and 1 (0.5 is the median), {rank!r} does not."
        )
    return float(rank)


def _whole(number: Any, what: str, least: int, greatest: int) -> int:
    if type(number) is not int or not least <= number <= greatest:
        raise BuildError(
            f"{what} must be a whole number from {least} to {greatest}, not {number!r}."
        )
    return number
