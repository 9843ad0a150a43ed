"""What the diagnosis says of a model, against servers that lack one thing or another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from canned_server import Answer, CannedServer, error_answer, json_answer
from wire import anthropic_answer, chat_answer, responses_answer

from harness_nb.cli.findings import Finding
from harness_nb.cli.probes import probe_models
from harness_nb.settings import Settings

KEY = "sk-secret-0123456789"
COUNTS = {"input_tokens": 40, "output_tokens": 20}
REPLIES: list[dict[str, Any]] = [
    {"text": "one, two, three, four, five", "usage": COUNTS},
    {"calls": [{"name": "report", "arguments": {"number": 7}}]},
    {"text": "Red."},
]
LISTED = json_answer({"data": [{"id": "tiny", "max_model_len": 8192}, {"id": "gpt-6-luna"}]})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


async def found(workspace: Path, server: CannedServer, **given: Any) -> dict[str, Finding]:
    settings = Settings.load(workspace, {"model": "chat:tiny", "base_url": server.url, **given}, {})
    findings = [finding async for finding in probe_models(settings)]
    assert KEY not in str(findings)
    assert all(finding.way_out or finding.passed for finding in findings if finding.name != "account")
    return {finding.name: finding for finding in findings}


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("chat:tiny", chat_answer),
        ("openai:gpt-6-luna", responses_answer),
        ("anthropic:claude-sonnet-5-5", anthropic_answer),
    ],
)
async def test_all_is_well(tmp_path: Path, server: CannedServer, model: str, answer: Any) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.harness-nb.prices]\n"*" = { input = 0.5, output = 2.0 }\n')
    server.add(LISTED, *map(answer, REPLIES))
    lines = await found(tmp_path, server, model=model)
    named = [name for name in lines if name not in ("context window",)]
    parts = ["endpoint", "key", f"model {model}", "streaming", "tool calls", "images", "token counts", "price"]
    assert named == [*parts, "classifier"] and "none, so calls are decided by rules alone" in lines["classifier"].detail
    assert all(lines[name].passed for name in named)
    assert lines["price"].detail == "$0.5 in and $2 out, for a million tokens"
    assert lines["token counts"].detail == "the server counts: 40 in, 20 out"
    host = server.url.split("/")[2]
    among = "is not among them" if model.startswith("anthropic") else f"{model.split(':')[1]} among them"
    assert (
        lines["endpoint"].detail.startswith(f"{host} answers, and lists 2 models") and among in lines["endpoint"].detail
    )
    if not model.startswith("anthropic"):
        assert lines["key"].detail == "OPENAI_API_KEY is set (it is not shown), and accepted"
    if model == "chat:tiny":
        assert "8,192 tokens, as the server says" in lines["context window"].detail
    picture = json.dumps(server.bodies[3])
    assert "iVBORw0KGgo" in picture


async def test_what_can_be_done_without_is_told_and_not_needed(tmp_path: Path, server: CannedServer) -> None:
    whole = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "one, two"}, "finish_reason": "stop"}]
    }
    server.add(error_answer(404, "no list"), json_answer(whole), chat_answer(REPLIES[1]))
    server.add(error_answer(400, "image_url is not supported by this model"), chat_answer({"text": "I see nothing."}))
    lines = await found(tmp_path, server)
    assert lines["endpoint"].passed and "does not list its models" in lines["endpoint"].detail
    lacking = ["streaming", "images", "context window", "token counts", "price"]
    assert [name for name, finding in lines.items() if not finding.passed] == lacking
    assert not any(lines[name].needed for name in lacking)
    assert lines["images"].detail == "the server takes none"
    assert "--context-window N" in lines["context window"].way_out
    assert '"chat:tiny" = { input' in lines["price"].way_out and "--max-cost is refused" in lines["price"].way_out


async def test_a_model_that_does_not_see_or_call_says_so(tmp_path: Path, server: CannedServer) -> None:
    server.add(LISTED, *map(chat_answer, (REPLIES[0], {"text": "I report 7."}, {"text": "Blue"})))
    lines = await found(tmp_path, server, context_window=4096)
    assert lines["tool calls"].needed and "did not call the tool" in lines["tool calls"].detail
    assert "it said 'Blue'" in lines["images"].detail
    assert lines["context window"].detail == "4,096 tokens, as the settings say"


async def test_a_refused_key_is_named_and_not_shown(tmp_path: Path, server: CannedServer) -> None:
    server.add(error_answer(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"))
    lines = await found(tmp_path, server)
    assert list(lines) == ["endpoint", "key"] and lines["endpoint"].passed
    assert "OPENAI_API_KEY is set (it is not shown), and was refused" in lines["key"].detail
    server.add(LISTED, error_answer(403, "not for you"))
    assert not (await found(tmp_path, server))["key"].passed


async def test_a_server_without_a_key_is_fine(
    tmp_path: Path, server: CannedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server.add(LISTED, *map(chat_answer, REPLIES))
    assert (await found(tmp_path, server))["key"].detail == "none is set (OPENAI_API_KEY), and none is asked for"


async def test_a_dead_server_a_page_and_a_wrong_name_are_told(tmp_path: Path, server: CannedServer) -> None:
    page = {"content-type": "text/html"}
    server.add(Answer([b"<html><title>Welcome</title></html>"], headers=page))
    lines = await found(tmp_path, server)
    assert list(lines) == ["endpoint"] and "Welcome" in lines["endpoint"].detail and "/v1" in lines["endpoint"].way_out
    server.add(LISTED, error_answer(404, "The model tyni does not exist", "model_not_found"))
    lines = await found(tmp_path, server, model="chat:tyni")
    assert not lines["model chat:tyni"].passed and lines["model chat:tyni"].way_out == "the server has tiny"
    server.add(LISTED, error_answer(404, "The model zz does not exist", "model_not_found"))
    lines = await found(tmp_path, server, model="chat:zz")
    assert lines["model chat:zz"].way_out == "the server has tiny, gpt-6-luna"
    await server.stop()
    lines = await found(tmp_path, server)
    assert list(lines) == ["endpoint"] and "connection to" in lines["endpoint"].detail


async def test_the_small_model_is_asked_too(tmp_path: Path, server: CannedServer) -> None:
    server.add(LISTED, *map(chat_answer, REPLIES), error_answer(404, "The model is not here"))
    lines = await found(tmp_path, server, small_model="chat:smaller")
    assert "not here" in lines["small model chat:smaller"].detail
    assert "leave --small-model out" in lines["small model chat:smaller"].way_out


async def test_a_script_is_only_read(tmp_path: Path, server: CannedServer) -> None:
    (tmp_path / "script.json").write_text('[{"text": "Fine."}]')
    lines = await found(tmp_path, server, model="scripted:script.json")
    assert lines["model scripted:script.json"].passed and not server.requests
    lines = await found(tmp_path, server, model="scripted:absent.json")
    assert "absent.json" in lines["model"].way_out
