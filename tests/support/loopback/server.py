"""A model server on the loopback interface that answers by a script and remembers what came in."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import h11

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
    OpenAIChat(),
    OpenAIResponses(),
    GoogleGenerate(),
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
    server = Loopback(script)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loopback", daemon=True)
    thread.start()
    conversations: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        conversations.add(task)
        try:
            # The test is over; asyncio's streams take a cancelled conversation for a failure.
            with suppress(asyncio.CancelledError):
                await _Conversation(server, reader, writer).run()
        finally:
            conversations.discard(task)

    async def start() -> asyncio.Server:
        return await asyncio.start_server(talk, "127.0.0.1", 0)

    async def stop(listening: asyncio.Server) -> None:
        listening.close()
        for task in list(conversations):
            task.cancel()
        await asyncio.gather(*conversations, return_exceptions=True)

    listening = asyncio.run_coroutine_threadsafe(start(), loop).result()
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(stop(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Conversation:
    def __init__(
        self, server: Loopback, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._http = h11.Connection(h11.SERVER)
        self._incoming: asyncio.Task[bytes] | None = None

    async def run(self) -> None:
        try:
            while request := await self._next_request():
                self._server._note(request, self._server.requests)
                try:
                    await self._answer(request, self._server.script(request))
                except (_Departed, ConnectionError):
                    self._server._note(request, self._server.departed)
                    return
                if self._http.our_state is not h11.DONE:
                    return
                self._http.start_next_cycle()
        finally:
            if self._incoming:
                self._incoming.cancel()
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()

    async def _next_request(self) -> Request | None:
        head: h11.Request | None = None
        raw = bytearray()
        while True:
            match self._http.next_event():
                case h11.NEED_DATA:
                    self._http.receive_data(await self._read())
                case h11.Request() as head:
                    if self._http.they_are_waiting_for_100_continue:
                        self._send(h11.InformationalResponse(status_code=100, headers=[]))
                case h11.Data(data=data):
                    raw += data
                case h11.EndOfMessage():
                    assert head
                    return _request(head, bytes(raw), len(self._server.requests))
                case _:
                    return None

    async def _read(self) -> bytes:
        incoming, self._incoming = self._incoming, None
        with suppress(ConnectionError):
            return await (incoming or self._reader.read(65_536))
        return b""

    async def _unless_departed(self, what: Awaitable[None]) -> None:
        """Raises _Departed as soon as whoever asked closes the connection."""
        if self._incoming is None:
            self._incoming = asyncio.ensure_future(self._reader.read(65_536))
        task = asyncio.ensure_future(what)
        await asyncio.wait({task, self._incoming}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
            return
        task.cancel()
        raise _Departed

    async def _answer(self, request: Request, answer: Answer) -> None:
        wire = next((wire for wire in WIRES if wire.takes(request)), None)
        if wire is None:
            await self._whole(Raw(b'{"error": {"message": "Not Found"}}', 404))
            return
        match answer:
            case Says() if wire.wants_stream(request):
                await self._stream(wire.stream_type, _all(wire.pieces(answer, request)))
            case Says():
                await self._whole(Raw(as_json(wire.whole(answer, request))))
            case Refuses():
                refusal = wire.refusal(answer)
                await self._whole(
                    Raw(as_json(refusal.body), refusal.status, headers=refusal.headers)
                )
            case Raw():
                await self._whole(answer)
            case Waits(gate, then, after) if after and isinstance(then, Says):
                pieces = self._with_a_pause(list(wire.pieces(then, request)), after, gate.opened)
                await self._stream(wire.stream_type, pieces)
            case Waits(gate, then):
                await self._unless_departed(gate.opened())
                await self._answer(request, then)
            case BreaksOff(then, after):
                await self._break_off(wire, then, after, request)
            case Endless(text):
                await self._stream(wire.stream_type, _endless(wire, text, request))

    async def _whole(self, raw: Raw) -> None:
        headers = {
            "content-type": raw.content_type,
            "content-length": str(len(raw.content)),
            **raw.headers,
        }
        self._send(h11.Response(status_code=raw.status, headers=_pairs(headers)))
        self._send(h11.Data(data=raw.content))
        await self._end()

    async def _stream(self, content_type: str, pieces: AsyncIterator[bytes]) -> None:
        headers = {"content-type": content_type, "transfer-encoding": "chunked"}
        self._send(h11.Response(status_code=200, headers=_pairs(headers)))
        async for piece in pieces:
            self._send(h11.Data(data=piece))
            await self._unless_departed(self._writer.drain())
            # Where whoever reads is fast, the buffer is never full, and a departure must be seen.
            await self._unless_departed(asyncio.sleep(0))
        await self._end()

    async def _break_off(self, wire: Wire, says: Says, after: int, request: Request) -> None:
        if after:
            whole = as_json(wire.whole(says, request))
            is_stream = wire.wants_stream(request)
            length = {"transfer-encoding": "chunked"} if is_stream else {}
            headers = {
                "content-type": wire.stream_type if is_stream else "application/json",
                **(length or {"content-length": str(len(whole))}),
            }
            self._send(h11.Response(status_code=200, headers=_pairs(headers)))
            pieces = list(wire.pieces(says, request))[:after] if is_stream else [whole[: after * 8]]
            for piece in pieces:
                self._send(h11.Data(data=piece))
            await self._writer.drain()
        self._http.send_failed()

    async def _with_a_pause(
        self, pieces: list[bytes], after: int, opened: Callable[[], Awaitable[None]]
    ) -> AsyncIterator[bytes]:
        for piece in pieces[:after]:
            yield piece
        await self._unless_departed(opened())
        for piece in pieces[after:]:
            yield piece

    def _send(self, event: Any) -> None:
        self._writer.write(self._http.send(event) or b"")

    async def _end(self) -> None:
        self._send(h11.EndOfMessage())
        await self._unless_departed(self._writer.drain())


def _request(head: h11.Request, raw: bytes, number: int) -> Request:
    path, _, query = head.target.decode("ascii").partition("?")
    try:
        body = json.loads(raw)
    except ValueError:
        body = {}
    return Request(
        method=head.method.decode("ascii"),
        path=path,
        query=query,
        headers={name.decode(): value.decode("latin-1") for name, value in head.headers},
        raw=raw,
        body=body if isinstance(body, dict) else {},
        number=number,
    )


def _pairs(headers: dict[str, str]) -> list[tuple[str, str]]:
    return list(headers.items())


async def _all(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _endless(wire: Wire, text: str, request: Request) -> AsyncIterator[bytes]:
    """The pieces of an answer, of which the first with text comes again and again."""
    pieces = list(wire.pieces(Says(text * 4), request))
    mark = as_json(text)[1:-1]
    first = next(index for index, piece in enumerate(pieces) if mark in piece)
    for piece in pieces[:first]:
        yield piece
    while True:
        yield pieces[first]
