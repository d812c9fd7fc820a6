"""Functions that get their rows in the order of time keep the contract."""

from __future__ import annotations

from typing import Any, ClassVar

from tests.runtime.process import written
from tests.runtime.process.process_contract import Failing, ProcessContract


class TestOrdered(ProcessContract):
    has_late_rows = True
    function = written.KeepsList
    said: ClassVar[dict[str, Any]] = {"ordered": True}


class TestOrderedShort(ProcessContract):
    has_late_rows = True
    function = written.ShortMap
    said: ClassVar[dict[str, Any]] = {"ordered": True}


class TestFailingOrdered(Failing):
    has_late_rows = True
    function = written.KeepsMap
    said: ClassVar[dict[str, Any]] = {"on_error": "dead_letter", "ordered": True}
