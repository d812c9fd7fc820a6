"""Finds Java and says what to do when it is missing or too old. Spark 4 needs 17 or newer."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from headrace.errors import SetupError

__all__ = ["OLDEST", "check_java"]

OLDEST = 17

_INSTALL = {
    "Linux": "sudo apt-get install openjdk-17-jre-headless (or your distribution's package)",
    "Darwin": "brew install openjdk@17",
    "Windows": "winget install Microsoft.OpenJDK.17",
}


def check_java() -> Path:
    """The `java` that Spark will run; raises `SetupError` with the command that mends it."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not found or not Path(found).exists():
        where = f"JAVA_HOME is {home} and has no bin/java" if home else "there is no java on PATH"
        raise SetupError(
            f"Headrace runs on Spark, which needs Java {OLDEST} or newer, and {where}. {_advice()}"
        )
    version = _version(found)
    if version < OLDEST:
        raise SetupError(
            f"Spark needs Java {OLDEST} or newer, and {found} is Java {version}. {_advice()}"
        )
    return Path(found)


def _version(java: str) -> int:
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    if match is None:
        raise SetupError(
            f"{java} does not say its version; it printed: {text.strip()[:200]!r}. {_advice()}"
        )
    return int(match.group(1))


def _advice() -> str:
    return f"Install it with: {_INSTALL.get(platform.system(), _INSTALL['Linux'])}, or point JAVA_HOME at it."
