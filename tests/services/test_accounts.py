"""Where servers keep their files: made once, from the beginning if that was cut off, and nobody else's."""

from pathlib import Path

import pytest

from headrace._services.accounts import made_once, room_of
from headrace.errors import SetupError


def test_what_was_cut_off_is_made_from_the_beginning(tmp_path: Path) -> None:
    room = room_of(tmp_path, None)

    def cut_off() -> None:
        (room / "VERSION").touch()
        (room / "base").mkdir()
        raise KeyboardInterrupt

    def make() -> None:
        assert list(room.iterdir()) == []
        (room / "VERSION").write_text("1")

    with pytest.raises(KeyboardInterrupt):
        made_once(tmp_path, room, cut_off)
    for _ in range(2):
        made_once(tmp_path, room, make)
        assert (room / "VERSION").read_text() == "1"


def test_a_link_to_the_files_of_another_server_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "content").symlink_to(tmp_path / "real")
    with pytest.raises(SetupError, match="leads somewhere else"):
        room_of(tmp_path, None)
