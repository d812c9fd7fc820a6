"""A certificate for a server on loopback, made with openssl: one file for clients, one for the server."""

import subprocess
from pathlib import Path

from headrace._services.ports import HOST
from headrace.errors import SetupError

__all__ = ["CERTIFICATE", "KEY_STORE", "make_certificate"]

CERTIFICATE = "certificate.pem"
KEY_STORE = "key-store.pem"


def make_certificate(directory: Path) -> None:
    """Write a certificate of its own authority and the file with its key, unless they are there."""
    store = directory / KEY_STORE
    if store.exists():
        return
    key, certificate = directory / "key.pem", directory / CERTIFICATE
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650"]
    command += ["-subj", "/CN=localhost", "-addext", f"subjectAltName=IP:{HOST},DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(command, capture_output=True, check=True)
    except FileNotFoundError:
        raise SetupError("A listener with TLS needs openssl; install it.") from None
    except subprocess.CalledProcessError as error:
        raise SetupError(f"openssl made no certificate: {error.stderr.decode()}") from None
    store.touch(mode=0o600)
    store.write_text(key.read_text() + certificate.read_text())
    key.unlink()
