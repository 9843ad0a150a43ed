"""Case C3: the same work gives the same bytes, so that prompt caches hit, in one run and from run to run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from canned_server import CannedServer
from conftest import ANSWERS, MAKERS
from stand_ins import PICTURE, PROMPT, TOOLS, Naps, timeless

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.kernel import FakeKernel
from harness_nb.ports import ModelSettings
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Message, TextPart, ToolSpec, text_message

Ask = Callable[..., Any]
REPLIES: list[dict[str, Any]] = [
    {"text": "I look.", "calls": [{"name": "python", "arguments": {"code": "1 / 3", "ünï": [1.0, None]}}]},
    {"calls": [{"name": "python", "arguments": {"code": "plot()"}}, {"name": "python", "arguments": {"code": "2"}}]},
    {"text": "Done.", "calls": [{"name": "finish", "arguments": {"summary": "All done."}}]},
]
for number, reply in enumerate(REPLIES):
    for place, call in enumerate(reply["calls"]):
        call["id"] = f"call_{number}{place}"

GROWING = {"responses": "input", "chat": "messages", "anthropic": "messages"}
TABLE = ToolSpec(
    name="table",
    description="A tool whose schema has an order of its own.",
    parameters={"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}, "required": ["z"]},
)


async def work(kind: str, server: CannedServer, naps: Naps, ask: Ask) -> list[bytes]:
    """A run of three turns with a model of its own; gives the bodies of its requests."""
    first = len(server.requests)
    server.add(*map(ANSWERS[kind], REPLIES))
    model = MAKERS[kind]("m", base_url=server.url, api_key="k", timeout=20, sleep=naps)
    messages: list[Message] = list(PROMPT)
    settings = ModelSettings(max_output_tokens=900, reasoning_effort="low", cache_key="one key")
    for _ in REPLIES:
        _, reply = await ask(model, tuple(messages), (*TOOLS, TABLE), settings)
        messages.append(reply)
        for call in reply.tool_calls:
            content = (TextPart(text="0.333…\n\tümlaut"), PICTURE)
            messages.append(Message(role="tool", call_id=call.call_id, content=content))
        messages.append(text_message("user", "Two turns are left."))
    await model.aclose()
    return [request.raw for request in server.requests[first:]]


@pytest.mark.parametrize("kind", MAKERS)
async def test_two_runs_send_the_same_bytes(kind: str, server: CannedServer, naps: Naps, ask: Ask) -> None:
    one, two = await work(kind, server, naps, ask), await work(kind, server, naps, ask)
    assert len(one) == 3
    assert one == two


@pytest.mark.parametrize("kind", MAKERS)
async def test_each_request_begins_as_the_one_before_it(kind: str, server: CannedServer, naps: Naps, ask: Ask) -> None:
    """All but the marks of Anthropic's cache, which stand at the end and move with it."""
    bodies = [json.loads(raw) for raw in await work(kind, server, naps, ask)]
    fixed = [json.dumps({**body, GROWING[kind]: None}) for body in bodies]
    assert fixed[0] == fixed[1] == fixed[2]
    texts = [re.sub(r', "cache_control": {[^}]*}', "", json.dumps(body[GROWING[kind]])) for body in bodies]
    for before, after in pairwise(texts):
        assert after.startswith(before.rstrip("]}"))
        assert len(after) > len(before)


@pytest.mark.parametrize("kind", MAKERS)
async def test_two_sessions_with_the_same_prompt_send_the_same_bytes(
    kind: str, server: CannedServer, naps: Naps, tmp_path: Path
) -> None:
    """All but the key that tells the cache of one session from that of another, the tag around results, which is drawn
    by chance and stands in no system prompt, and the seconds that a cell took.
    """
    runs = []
    for _ in range(2):
        start = len(server.requests)
        server.add(*map(ANSWERS[kind], REPLIES))
        model = MAKERS[kind]("m", base_url=server.url, api_key="k", timeout=20, sleep=naps)
        kernel = FakeKernel(lambda source: "42\n")
        session = await Session.open(Settings.load(tmp_path, {}, {}), DenyApprover(), model=model, kernel=kernel)
        events = [item async for item in session.send("Say {it}.") if isinstance(item, ev.EventBase)]
        await session.aclose()
        assert isinstance(events[-1], ev.SessionEnded) and events[-1].reason == "finished"
        runs.append([timeless(request.raw.replace(session.id.encode(), b"ID")) for request in server.requests[start:]])
    assert len(runs[0]) == 3
    assert runs[0][0] == runs[1][0], "system prompt, tools and prompt"
    assert runs[0] == runs[1]
