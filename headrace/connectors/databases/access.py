"""How a database is reached: a connection string and options, either of them by reference to a secret.

Only the process that opens a connection looks the secrets up. What people read (`shown`, errors through `scrubbed`)
never holds one, whether it was written out or looked up.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from headrace.errors import BuildError, SetupError
from headrace.secrets import hidden, looked_up, looked_up_all, without_password

__all__ = ["Access", "access_to", "missing_driver", "split_address"]

#: What may be the password of a URL that cannot be taken apart.
_ODD = re.compile(r"://[^:@]*:(.*)@")
#: `name=value ...`, or a reference to where the string is.
_KNOWN_FORM = re.compile(r"\s*\w+\s*=|(?:env|file):")
_SECRET_WORDS = ("password", "sslpassword", "passwd")


@dataclass(frozen=True)
class Access:
    """One database and who we are there. Travels to the workers; secrets that are references stay ones."""

    dsn: str = field(repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The connection string as people may read it."""
        return shown_address(self.dsn)

    @property
    def shown_options(self) -> dict[str, str]:
        """The options as people may read them."""
        return hidden(self.options)

    def resolved(self) -> tuple[str, dict[str, str]]:
        """The connection string and the options with the secrets in them."""
        return looked_up(self.dsn, "dsn"), looked_up_all(self.options)

    def scrubbed(self, message: str) -> str:
        """A message of the driver or server without any of our secrets."""
        for secret in sorted(self._secrets(), key=len, reverse=True):
            message = message.replace(secret, "***")
        return without_password(message)

    def _secrets(self) -> set[str]:
        try:
            dsn, options = self.resolved()
        except SetupError:
            return set()
        found = {value for name, value in options.items() if hidden({name: value})[name] == "***"}
        parsed = split_address(dsn)
        if parsed is None:
            found.update(word for text in _ODD.findall(dsn) for word in (text, *text.split("/")))
            found.update(word for word in dsn.split() if not _KNOWN_FORM.match(dsn) and "@" in word)
        else:
            # The driver takes what stands behind the first @ for the host, and says so.
            password = parsed.password or ""
            found.update((password, unquote(password), *password.split("@")))
            query = parse_qsl(parsed.query)
            found.update(value for name, value in query if name in _SECRET_WORDS)
        return {secret for secret in found if secret}


def access_to(dsn: str, options: Mapping[str, str] | None) -> Access:
    """The checked way to a database."""
    if not str(dsn).strip():
        raise BuildError(
            f"dsn must be a connection string such as 'postgresql://user@host/db', not {dsn!r}"
        )
    return Access(dsn, {str(name): str(value) for name, value in (options or {}).items()})


def shown_address(dsn: str) -> str:
    """A connection string without its password: a URL in its parts, anything else with `***` in it."""
    parsed = split_address(dsn)
    if parsed is None:
        scheme, there, _ = dsn.partition("://")
        if there:
            return f"{scheme}://***"
        return without_password(dsn) if _KNOWN_FORM.match(dsn) else "***"
    user, at, host = parsed.netloc.rpartition("@")
    named = user.partition(":")[0]
    query = "?..." if parsed.query else ""
    return f"{parsed.scheme}://{named}{':***' if ':' in user else ''}{at}{host}{parsed.path}{query}"


def missing_driver(package: str, extra: str) -> SetupError:
    """What is said where a driver is not installed."""
    return SetupError(f"{extra} needs {package}: pip install 'headrace[{extra}]'")


def split_address(dsn: str) -> SplitResult | None:
    """The parts of a URL; None if it is no URL or one that cannot be taken apart."""
    if "://" not in dsn:
        return None
    try:
        parsed = urlsplit(dsn)
        _ = parsed.port
    except ValueError:
        return None
    # A password with a slash that is not written %2F ends up in the path, or in the port.
    return None if "@" in parsed.path else parsed
