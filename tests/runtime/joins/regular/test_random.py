"""Any regular join of any stream shows what the oracle shows, however it is run."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from tests.runtime.joins.regular.cases import RANDOM, Drawn, compare, joins, keeps_of_one
from tests.runtime.windows.cases import disturbances


@RANDOM
@given(joins(), disturbances())
def test_any_join(drawn: Drawn, how: Any) -> None:
    compare(drawn.node, drawn.epochs, drawn.where, **how)


@RANDOM
@given(joins(hows=["left", "full", "semi", "anti"]), disturbances())
def test_any_join_that_shows_what_is_not_there(drawn: Drawn, how: Any) -> None:
    compare(drawn.node, drawn.epochs, drawn.where, **how)


@RANDOM
@given(keeps_of_one(), disturbances())
def test_any_row_of_a_key(drawn: Drawn, how: Any) -> None:
    compare(drawn.node, drawn.epochs, drawn.where, **how)
