"""Whom a server runs as that refuses to run as root, and where that user can keep files."""

import hashlib
import os
import pwd
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.errors import SetupError

__all__ = ["lesser_user", "made_once", "room_of"]


def lesser_user(names: Sequence[str]) -> str | None:
    """The first of these users that exists if we are root, else None: ourselves."""
    if os.geteuid() != 0:
        return None
    for name in names:
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise SetupError(
        f"This server does not run as root and there is none of the users {', '.join(names)}."
    )


def room_of(directory: Path, user: str | None) -> Path:
    """A directory that the user owns and can enter: in `directory`, or beside other temporary files if it cannot."""
    room = directory / "content"
    if user is not None and not all(_is_open(parent) for parent in room.parents):
        mark = hashlib.sha256(str(directory).encode()).hexdigest()[:16]
        room = Path(tempfile.gettempdir(), f"headrace-{directory.name}-{mark}")
    room.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Anybody may put one beside other temporary files, and it may lead to a real database.
    if room.is_symlink():
        raise SetupError(f"{room} leads somewhere else. Remove it and try again.")
    if user is not None and room.stat().st_uid != pwd.getpwnam(user).pw_uid:
        _give(room, user)
    return room


def made_once(directory: Path, room: Path, make: Callable[[], None]) -> None:
    """Fill a room, unless that was done; from the beginning if it was cut off."""
    begun = directory / "begun"
    if any(room.iterdir()) and not begun.exists():
        return
    begun.touch()
    for left in room.iterdir():
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        else:
            left.unlink()
    make()
    begun.unlink()


def _give(room: Path, user: str) -> None:
    if any(room.iterdir()):
        raise SetupError(f"{room} belongs to somebody else. Remove it and try again.")
    shutil.chown(room, user, pwd.getpwnam(user).pw_gid)


def _is_open(directory: Path) -> bool:
    return bool(directory.stat().st_mode & 0o001)
