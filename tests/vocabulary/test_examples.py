"""The examples in the docstrings of the vocabulary run and show what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    "aggregates config environment expressions functions schema watermarks windows".split(),
)
def test_examples_show_what_they_say(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"headrace.{name}")).failed == 0
