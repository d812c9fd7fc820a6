"""The examples in the docstrings of the vocabulary run and show what they say."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        *"headrace.aggregates headrace.config headrace.environment headrace.expressions".split(),
        *"headrace.functions headrace.schema headrace.watermarks headrace.windows".split(),
        "tests.oracle.windows",
    ],
)
def test_examples_show_what_they_say(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
