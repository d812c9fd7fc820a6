"""Secrets by reference: an option says where a secret is, and it is looked up where a client is opened.

    password="env:DB_PASSWORD"        the environment variable, in the process that opens the client
    password="file:/run/secrets/db"   the file's text, without the line break at its end

Plans, checkpoints and logs hold the reference only. A value that is written out is used as it is, but never shown:
`hidden` and `without_password` are for everything that people read.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from headrace.errors import SetupError

__all__ = ["hidden", "looked_up", "looked_up_all", "without_password"]

_SECRET = re.compile(
    r"(?i)secret|password|passphrase|token|credential|jaas|api[._-]?key|\.key\b|ssl\.key"
)
_REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)
_USERINFO = re.compile(r"(?<=://)([^/@:\s]*):([^/@\s]*)@")
#: Values as connection strings have them: in quotes, perhaps forgotten at the end, or with blanks behind backslashes.
_WORD = re.compile(
    r"""(?is)\b((?:ssl)?passw(?:or)?d)\s*=\s*('(?:\\.|[^'\\])*(?:'|\Z)|(?:\\.|\S)+)"""
)


def looked_up(value: str, option: str) -> str:
    """The value behind a reference, or the value itself. `option` is what an error calls it."""
    match = _REFERENCE.fullmatch(value)
    if match is None:
        return value
    kind, place = match.groups()
    if kind == "env":
        found = os.environ.get(place)
        if found is None:
            raise SetupError(f"{option}={value!r}: the environment variable {place} is not set.")
        return found
    try:
        return Path(place).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise SetupError(f"{option}={value!r}: the file cannot be read: {error}") from error
    except UnicodeDecodeError:
        # The error that is left out has the secret in it.
        raise SetupError(f"{option}={value!r}: the file cannot be read: it is not UTF-8") from None


def looked_up_all(options: Mapping[str, str]) -> dict[str, str]:
    """Every option with the values behind its references."""
    return {name: looked_up(str(value), name) for name, value in options.items()}


def hidden(options: Mapping[str, str]) -> dict[str, str]:
    """The options as people may read them: references stay, secrets that are written out become `***`."""
    return {
        name: "***" if _SECRET.search(name) and not _REFERENCE.fullmatch(str(value)) else value
        for name, value in options.items()
    }


def without_password(text: str) -> str:
    """A connection string, or a message that quotes one, with `***` for the password.

    >>> without_password("postgresql://ada:lovelace@db/orders")
    'postgresql://ada:***@db/orders'
    """
    return _WORD.sub(r"\1=***", _USERINFO.sub(r"\1:***@", text))
