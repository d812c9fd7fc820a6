"""Ports of local servers: they stay, and may be asked for by many at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace._services.ports import kept_ports


def test_ports_are_kept_and_new_names_get_others(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    first = kept_ports(path, ["client"])
    second = kept_ports(path, ["client", "controller"])
    assert second["client"] == first["client"] != second["controller"]


def test_ports_can_be_asked_for_while_others_ask(tmp_path: Path) -> None:
    path = tmp_path / "ports.json"
    known = kept_ports(path, ["client"])
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: kept_ports(path, ["client"]), range(2000)))
    assert all(answer == known for answer in answers)
