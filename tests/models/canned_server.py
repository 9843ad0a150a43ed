"""A loopback HTTP server that gives prepared answers, byte for byte, and keeps the requests. For tests of adapters."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass
class Answer:
    """One HTTP answer: its chunks are sent one by one, then the connection ends in the way of ``end``."""

    chunks: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    end: Literal["close", "drop", "hang"] = "close"


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes = b""


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer([json.dumps(value).encode()], status, {"content-type": "application/json", **named})


def error_answer(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    return json_answer({"error": {"message": message, "type": "error_type", "code": code}}, status, **headers)


def sse(*events: Any, done: bool = False, names: bool = False) -> list[bytes]:
    """Each event as one chunk; ``names`` adds the ``event:`` line as the Responses API does."""
    chunks = []
    for event in events:
        head = f"event: {event['type']}\n" if names and isinstance(event, dict) else ""
        data = event if isinstance(event, str) else json.dumps(event)
        chunks.append(f"{head}data: {data}\n\n".encode())
    return [*chunks, b"data: [DONE]\n\n"] if done else chunks


class CannedServer:
    """Gives ``answers`` in order; a request beyond them is answered with 418, which nobody tries again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[Request] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    def add(self, *answers: Answer) -> None:
        self.answers += answers

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(Request(first.split()[1], headers, json.loads(body or b"{}"), body))
        answer = self.answers.pop(0) if self.answers else error_answer(418, "no answer is prepared")
        fields = {**answer.headers, "transfer-encoding": "chunked", "connection": "close"}
        head_lines = [f"HTTP/1.1 {answer.status} Canned", *(f"{name}: {value}" for name, value in fields.items())]
        writer.write(("\r\n".join(head_lines) + "\r\n\r\n").encode())
        for chunk in answer.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if answer.end == "hang":
            await reader.read()
        elif answer.end == "close":
            writer.write(b"0\r\n\r\n")
            await writer.drain()
