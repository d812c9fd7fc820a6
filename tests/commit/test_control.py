from pathlib import Path

from headrace._commit.control import read_request, write_request
from headrace._commit.paths import Layout


def test_the_last_request_stands(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert read_request(layout) == "run"
    for request in ("stop", "drain", "run"):
        write_request(layout, request)
        assert read_request(layout) == request


def test_an_unreadable_request_means_go_on(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for content in (b"", b"[]", b'{"request": "dance"}'):
        layout.control.write_bytes(content)
        assert read_request(layout) == "run"
