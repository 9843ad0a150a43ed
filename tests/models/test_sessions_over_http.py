"""Whole sessions with models behind HTTP: what their options, their limits and their failures come to."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer
from wire import chat_answer, responses_answer

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.session import Session
from harness_nb.settings import Settings

LS = {"calls": [{"name": "bash", "arguments": {"command": "ls"}}], "usage": {"input_tokens": 900, "output_tokens": 9}}
DONE = {
    "calls": [{"name": "finish", "arguments": {"summary": "All done."}}],
    "usage": {"input_tokens": 1000, "output_tokens": 10, "reasoning_tokens": 4},
}


@asynccontextmanager
async def opened(workspace: Path, server: CannedServer, **given: Any) -> AsyncGenerator[Session]:
    overrides = {"model": "openai:gpt-6-luna", "base_url": server.url, **given}
    session = await Session.open(Settings.load(workspace, overrides, {}), DenyApprover())
    try:
        yield session
    finally:
        await session.aclose()


async def send(session: Session, prompt: str = "go") -> list[ev.Event]:
    return [item async for item in session.send(prompt) if isinstance(item, ev.EventBase)]


async def test_the_options_reach_the_request(tmp_path: Path, server: CannedServer) -> None:
    server.add(responses_answer(DONE), chat_answer(DONE))
    options: dict[str, Any] = {"temperature": 0.25, "reasoning_effort": "low", "max_output_tokens": 700}
    async with opened(tmp_path, server, web=True, **options) as session:
        await send(session)
    async with opened(tmp_path, server, model="chat:qwen", **options) as session:
        await send(session)
    responses, chat = server.bodies
    assert (responses["temperature"], responses["reasoning"]["effort"], responses["max_output_tokens"]) == (
        0.25,
        "low",
        700,
    )
    assert responses["tools"][-1] == {"type": "web_search"}
    assert "search the web where you have a tool for that" in responses["instructions"]
    assert (chat["temperature"], chat["reasoning_effort"], chat["max_tokens"]) == (0.25, "low", 700)
    assert "web" not in str(chat["tools"])


async def test_two_runs_of_the_same_prompt_send_the_same_prefix(tmp_path: Path, server: CannedServer) -> None:
    for _ in range(2):
        server.add(responses_answer(LS), responses_answer(DONE))
        async with opened(tmp_path, server) as session:
            await send(session, "Say {it}.")
    first, second, again, last = server.bodies
    for name in ("instructions", "tools", "include", "reasoning"):
        assert json.dumps(first[name]) == json.dumps(second[name]) == json.dumps(again[name]) == json.dumps(last[name])
    assert first["input"] == again["input"] == second["input"][:1]
    assert first["prompt_cache_key"] == second["prompt_cache_key"] != again["prompt_cache_key"]


async def test_an_overflow_over_the_wire_is_summarised_by_the_small_model(tmp_path: Path, server: CannedServer) -> None:
    overflow = error_answer(400, "maximum context length is 16000 tokens", "context_length_exceeded")
    server.add(responses_answer(LS), responses_answer(LS), overflow)
    server.add(responses_answer({"text": "## Done\nListed twice.", "usage": {"input_tokens": 50, "output_tokens": 5}}))
    server.add(responses_answer(DONE))
    rates = '"gpt-6-luna" = { input = 1.0, output = 10.0 }\ntiny = { input = 0.1, output = 0.2 }\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.harness-nb.prices]\n{rates}")
    async with opened(tmp_path, server, small_model="openai:tiny", max_cost=5.0, classifier="off") as session:
        events = await send(session)
        total = session.usage
    assert [body["model"] for body in server.bodies] == [*["gpt-6-luna"] * 3, "tiny", "gpt-6-luna"]
    summarised = server.bodies[3]
    assert (
        "tools" not in summarised and "prompt_cache_key" not in summarised and "hand-over" in summarised["instructions"]
    )
    (head, *rest) = server.bodies[4]["input"]
    assert "Listed twice." in head["content"] and "<task>\ngo\n</task>" in head["content"]
    calls = [item["call_id"] for item in rest if item["type"] == "function_call"]
    assert calls == [item["call_id"] for item in rest if item["type"] == "function_call_output"]
    (compacted,) = [event for event in events if isinstance(event, ev.ContextCompacted)]
    assert compacted.usage.cost_usd == pytest.approx((50 * 0.1 + 5 * 0.2) / 1e6)
    expected = (2 * (900 + 90) + 1000 + 100) / 1e6 + compacted.usage.cost_usd
    assert events[-1].usage.cost_usd == total.cost_usd == pytest.approx(expected)
    assert events[-1].usage.reasoning_tokens == 4


async def test_a_request_that_would_pass_the_limit_is_not_sent(tmp_path: Path, server: CannedServer) -> None:
    server.add(responses_answer({**LS, "usage": {"input_tokens": 9000, "output_tokens": 90}}))
    async with opened(tmp_path, server, max_tokens=15_000) as session:
        events = await send(session)
    assert len(server.requests) == 1
    assert events[-1].reason == "limit"
    assert "9,090 of 15,000 tokens are used, and the next request would take about" in events[-1].text


def harness(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "HARNESS_NB"))}
    return subprocess.run(
        [sys.executable, "-m", "harness_nb.cli", *words],
        cwd=folder,
        env={**environment, "OPENAI_API_KEY": "sk-test-0123456789", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (error_answer(429, "You exceeded your current quota.", "insufficient_quota"), "no credit or quota left"),
        (error_answer(429, "Slow down.", "rate_limit_exceeded", retry_after="3600"), "asks to wait 3600 s"),
        (error_answer(401, "Incorrect API key provided.", "invalid_api_key"), "OPENAI_API_KEY"),
    ],
    ids=["quota", "long wait", "key"],
)
async def test_after_giving_up_the_state_is_saved_and_resume_goes_on(
    tmp_path: Path, server: CannedServer, failure: Answer, said: str
) -> None:
    touch = {"calls": [{"name": "bash", "arguments": {"command": "echo once >> log.txt"}}]}
    server.add(responses_answer(touch), failure)
    where = ("--model", "openai:gpt-6-luna", "--base-url", server.url)
    failed = await asyncio.to_thread(harness, tmp_path, "run", "Go {on}.", *where)
    assert failed.returncode == 1, failed.stderr
    assert said in failed.stderr and "sk-test-0123456789" not in failed.stderr + failed.stdout
    assert len(server.requests) == 2, "it is not tried again"
    journal = next((tmp_path / "harness_sessions").glob("*/journal.jsonl"))
    ended = json.loads(journal.read_text().splitlines()[-1])
    assert (ended["type"], ended["reason"], ended["turns"]) == ("session_ended", "model_error", 2)
    server.add(responses_answer(DONE))
    resumed = await asyncio.to_thread(harness, tmp_path, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stdout == "All done.\n"
    sent = server.bodies[2]["input"]
    assert sent[0]["content"] == "Go {on}." and sent[1]["type"] == "function_call"
    assert "work was stopped" in sent[-1]["content"] or "continued in a fresh kernel" in sent[-1]["content"]
    assert (tmp_path / "log.txt").read_text() == "once\n"


async def test_run_with_another_model_in_the_same_session(tmp_path: Path, server: CannedServer) -> None:
    thought = json_answer(
        {
            "id": "r", "object": "response", "status": "completed", "model": "gpt-6-luna", "usage": None,
            "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "bash", "status": "completed",
                 "arguments": '{"command": "ls"}'},
            ],
        }
    )  # fmt: skip
    server.add(thought, responses_answer(DONE))
    where = ("--base-url", server.url)
    first = await asyncio.to_thread(harness, tmp_path, "run", "one", "--model", "openai:gpt-6-luna", *where)
    assert first.returncode == 0, first.stderr
    assert "gAAAA" in json.dumps(server.bodies[1]["input"]), "the same model gets its own items back"
    session_id = next((tmp_path / "harness_sessions").glob("*.ipynb")).stem
    server.add(responses_answer(DONE), chat_answer(DONE))
    for prompt, model in (("two", "openai:other"), ("three", "chat:qwen")):
        done = await asyncio.to_thread(
            harness, tmp_path, "run", prompt, "--session", session_id, "--model", model, *where
        )
        assert done.returncode == 0, done.stderr
        assert f"the model is {model} now" in done.stderr
    other, chat = server.bodies[2:]
    assert "gAAAA" not in json.dumps(other) + json.dumps(chat)
    calls = [item["call_id"] for item in other["input"] if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in other["input"] if item.get("type") == "function_call_output"]
    told = [call["id"] for message in chat["messages"] for call in message.get("tool_calls", [])]
    assert told == [message["tool_call_id"] for message in chat["messages"] if message["role"] == "tool"]
