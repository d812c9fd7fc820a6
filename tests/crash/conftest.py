"""Crash tests start Spark dozens of times, so they make the archive of Java classes first."""

import subprocess
import sys

import pytest


@pytest.fixture(scope="session", autouse=True)
def archive() -> None:
    subprocess.run([sys.executable, "-m", "headrace._spark.archive"], check=True, timeout=600)
