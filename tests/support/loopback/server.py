"""A model server on the loopback interface that answers by a script and remembers what came in."""

import json
import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat

from .answers import (
    Answer,
    BreaksOff,
    Endless,
    Raw,
    Refuses,
    Request,
    Says,
    Script,
    Waits,
    Wire,
    as_json,
)
from .anthropic_messages import AnthropicMessages
from .bedrock_converse import BedrockConverse
from .google_generate import GoogleGenerate
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses

WIRES: tuple[Wire, ...] = (
    AnthropicMessages(),
    GoogleGenerate(),
    OpenAIChat(),
    OpenAIResponses(),
    BedrockConverse(),
)
PATIENCE_S = 60.0
"""How long a test waits for something that has to happen; whoever waits in vain fails."""


class _Departed(Exception):  # noqa: N818 - not a failure
    """Whoever asked has closed the connection."""


@dataclass
class Loopback:
    """A running server; `script` may be replaced at any time."""

    script: Script
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    departed: list[Request] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for_requests(self, times: int) -> None:
        self.wait_until(lambda: len(self.requests) >= times, f"{times} requests")

    def wait_for_departures(self, times: int) -> None:
        self.wait_until(lambda: len(self.departed) >= times, f"{times} departures")

    def wait_until(self, happened: Callable[[], bool], what: str) -> None:
        """Return once it happened; it is looked at whenever somebody comes or leaves."""
        with self._changed:
            if not self._changed.wait_for(happened, PATIENCE_S):
                raise AssertionError(f"waited in vain for {what}, after {len(self.requests)}")

    def _note(self, request: Request, notes: list[Request]) -> None:
        with self._changed:
            notes.append(request)
            self._changed.notify_all()


@contextmanager
def loopback(script: Script) -> Iterator[Loopback]:
    seen = Loopback(script)
    connections: set[socket.socket] = set()

    class Conversation(_Conversation):
        server_seen = seen

        def setup(self) -> None:
            connections.add(self.request)
            super().setup()

        def finish(self) -> None:
            connections.discard(self.request)
            super().finish()

    with ThreadingHTTPServer(("127.0.0.1", 0), Conversation) as server:
        server.daemon_threads = False  # so that all conversations are over when it is
        seen.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="loopback")
        thread.start()
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()
            for connection in list(connections):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_seen: Loopback

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Log nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"] or 0))
        path, _, query = self.path.partition("?")
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        body, number = body if isinstance(body, dict) else {}, len(self.server_seen.requests)
        request = Request(self.command, path, query, headers, raw, body, number)
        self.server_seen._note(request, self.server_seen.requests)
        try:
            self._answer(request, self.server_seen.script(request))
        except (_Departed, ConnectionError):
            self.close_connection = True
            self.server_seen._note(request, self.server_seen.departed)

    def _answer(self, request: Request, answer: Answer) -> None:
        wire = next((wire for wire in WIRES if wire.takes(request)), None)
        if isinstance(answer, Raw):  # for any client, also of a format that is not spoken here
            self._whole(answer)
            return
        if wire is None:
            self._whole(Raw(b'{"error": {"message": "Not Found"}}', 404))
            return
        match answer:
            case Says() if wire.wants_stream(request):
                self._stream(wire.stream_type, wire.pieces(answer, request))
            case Says():
                self._whole(Raw(as_json(wire.whole(answer, request))))
            case Refuses():
                refusal = wire.refusal(answer)
                self._whole(Raw(as_json(refusal.body), refusal.status, headers=refusal.headers))
            case Waits(then, after):
                if after:
                    self._begin(200, wire.stream_type, {"transfer-encoding": "chunked"})
                    self._send(list(wire.pieces(then, request))[:after])
                self._raise_if_departed(PATIENCE_S)
            case BreaksOff(then, after):
                self._break_off(wire, then, after, request)
            case Endless(text):
                self._stream(wire.stream_type, _repeat_first(wire, text, request))

    def _begin(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": content_type, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _whole(self, raw: Raw) -> None:
        length = {"content-length": str(len(raw.content))}
        self._begin(raw.status, raw.content_type, length | dict(raw.headers))
        self.wfile.write(raw.content)

    def _stream(self, content_type: str, pieces: Iterable[bytes]) -> None:
        self._begin(200, content_type, {"transfer-encoding": "chunked"})
        self._send(pieces)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, pieces: Iterable[bytes]) -> None:
        for piece in pieces:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self._raise_if_departed(0)

    def _raise_if_departed(self, within_s: float) -> None:
        readable, _, _ = select.select([self.connection], [], [], within_s)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise _Departed

    def _break_off(self, wire: Wire, says: Says, after: int, request: Request) -> None:
        self.close_connection = True
        if after and wire.wants_stream(request):
            self._begin(200, wire.stream_type, {"transfer-encoding": "chunked"})
            self._send(list(wire.pieces(says, request))[:after])
        elif after:
            whole = as_json(wire.whole(says, request))
            self._begin(200, "application/json", {"content-length": str(len(whole))})
            self.wfile.write(whole[: after * 8])


def _repeat_first(wire: Wire, text: str, request: Request) -> Iterable[bytes]:
    """The pieces of an answer, of which the first with text comes again and again."""
    pieces = list(wire.pieces(Says(text * 4), request))
    mark = as_json(text)[1:-1]
    first = next(index for index, piece in enumerate(pieces) if mark in piece)
    return chain(pieces[:first], repeat(pieces[first]))
