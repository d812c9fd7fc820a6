"""A process without the memory of the whole suite, for tests that fork often: a fork copies the page tables of all of it."""

import functools
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["in_small_process"]


def in_small_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function of a module of tests returns, or the error that it raises."""
    return _process().submit(function, *arguments).result()


@functools.cache
def _process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
