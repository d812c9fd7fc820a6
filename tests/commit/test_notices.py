"""What processes without a terminal warn of reaches the driver: whole lines, each once."""

import logging
from pathlib import Path

import pytest

from headrace._commit.notices import Notices, forward_warnings

LOG = logging.getLogger("headrace.test")


@pytest.fixture(autouse=True)
def own_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("headrace"), "handlers", [])


def test_warnings_are_told_once_each_on_one_line(tmp_path: Path) -> None:
    notices = Notices(tmp_path / "notices")
    assert notices.new() == []
    forward_warnings(tmp_path / "notices")
    LOG.info("nothing to see")
    LOG.warning("%s\nis away", "it")
    LOG.error("gone")
    assert notices.new() == ["it is away", "gone"]
    assert notices.new() == []


def test_half_a_line_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "notices"
    notices = Notices(path)
    path.write_bytes(b"one\ntw")
    assert notices.new() == ["one"]
    path.write_bytes(b"one\ntwo\n")
    assert notices.new() == ["two"]


def test_a_process_of_another_start_tells_its_own_driver(tmp_path: Path) -> None:
    first, second = Notices(tmp_path / "first"), Notices(tmp_path / "second")
    forward_warnings(tmp_path / "first")
    forward_warnings(tmp_path / "second")
    LOG.warning("here")
    assert (first.new(), second.new()) == ([], ["here"])


def test_what_was_said_to_an_earlier_start_is_forgotten(tmp_path: Path) -> None:
    forward_warnings(tmp_path / "notices")
    LOG.warning("old")
    assert Notices(tmp_path / "notices").new() == []


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    forward_warnings(tmp_path / "absent" / "notices")
    LOG.warning("unheard")
    assert Notices(tmp_path / "absent" / "notices").new() == []
