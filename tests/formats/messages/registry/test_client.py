"""What a registry answers, and what that means for messages: only its own word makes an id unknown."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pytest

from headrace.errors import EngineError
from headrace.formats.messages import Avro, Registry

SCHEMA = pa.schema({"a": pa.int64()})
OPTIONS = {"max.retries": 1, "retries.wait.ms": 1, "retries.max.wait.ms": 2, "timeout": 0.5}


class Answering(HTTPServer):
    """Says the same to whatever it is asked, or to what begins with `only`."""

    status, content, only = 200, b"{}", "/"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Answering)
        known = f"{self.path}?".startswith(self.server.only)
        self.send_response(self.server.status if known else 404)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()
        self.wfile.write(self.server.content)

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Answering]:
    with Answering(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def causes(port: int) -> list[str]:
    registry = Registry(f"http://127.0.0.1:{port}", OPTIONS)
    decoded = Avro(registry=registry, subject="s").decoder(SCHEMA)([b"\x00\x00\x00\x00\x01\x02"])
    return [bad.cause for bad in decoded.bad]


def test_an_id_that_the_registry_does_not_know_is_a_bad_message(server: Answering) -> None:
    server.status, server.content = 404, b'{"error_code":40403,"message":"Schema not found"}'
    assert "schema id 1 is not known" in causes(server.server_port)[0]


def test_a_registry_that_does_not_tell_its_versions_is_enough(server: Answering) -> None:
    fields = [{"name": "a", "type": "string"}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    server.content = json.dumps({"schema": text}).encode()
    server.only = "/schemas/ids/1?"
    (cause,) = causes(server.server_port)
    assert cause == "the schema with id 1 has a: string; this job reads a: int64"


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (404, b"<html>default backend</html>", r"is that its URL\?\) failed with status 404"),
        (404, b'{"error_code":404,"message":"HTTP 404"}', "failed with status 404"),
        (200, b"<html>Log in</html>", "did not answer with JSON"),
        (500, b'{"error_code":50001,"message":"store"}', "failed with status 500: store"),
        (429, b"{}", "failed with status 429"),
    ],
)
def test_what_a_proxy_says_is_no_reason_to_give_up_messages(
    server: Answering, status: int, content: bytes, said: str
) -> None:
    server.status, server.content = status, content
    with pytest.raises(EngineError, match=said) as caught:
        causes(server.server_port)
    assert caught.value.retryable


def test_a_registry_that_does_not_answer_is_asked_again_later() -> None:
    away = pytest.raises(EngineError, match="cannot be reached: timed out")
    with socket.create_server(("127.0.0.1", 0)) as silent, away as caught:
        causes(silent.getsockname()[1])
    assert caught.value.retryable
