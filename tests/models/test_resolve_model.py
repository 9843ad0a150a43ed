"""From a spec to a model: forms, defaults, keys and base URLs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.models import DEFAULT_MODEL, default_model_spec, resolve_model


def test_importing_the_package_loads_no_provider() -> None:
    libraries = {"openai", "anthropic", "httpx2", "genai_prices"}
    code = f"import sys, harness_nb.models; print(sorted({libraries} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"HARNESS_NB_MODEL": "chat:qwen", "OPENAI_API_KEY": "k"}, "chat:qwen"),
        ({"OPENAI_API_KEY": "k"}, DEFAULT_MODEL),
        ({"HARNESS_NB_MODEL": " ", "OPENAI_API_KEY": "k"}, "openai:gpt-6-luna"),
    ],
)
def test_the_default_follows_the_environment(environment: dict[str, str], expected: str) -> None:
    assert default_model_spec(environment) == expected


@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_BASE_URL": "http://localhost:1/v1"}])
def test_without_a_model_and_a_key_it_says_what_to_do(environment: dict[str, str]) -> None:
    with pytest.raises(MissingKeyError) as caught:
        default_model_spec(environment)
    for word in ("OPENAI_API_KEY", "HARNESS_NB_MODEL", "harness-nb demo digits", "scripted:FILE.json"):
        assert word in str(caught.value)


@pytest.mark.parametrize("spec", ["", "gpt-6-luna", "openai:", "openapi:gpt", "chat", ":x", "OPENAI:gpt"])
def test_a_wrong_spec_lists_the_forms(spec: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_model(spec, directory=tmp_path, environment={"OPENAI_API_KEY": "k"})
    for form in ("openai:NAME", "chat:NAME", "scripted:FILE.json", "replay:SESSION"):
        assert form in str(caught.value)


def test_anthropic_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("anthropic_model", "anthropic_client"):
        monkeypatch.delitem(sys.modules, f"harness_nb.models.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(UsageError, match=r'pip install "harness-nb\[anthropic\]"'):
        resolve_model("anthropic:claude", directory=tmp_path, environment={"ANTHROPIC_API_KEY": "k"})


def test_anthropic_needs_its_own_key(tmp_path: Path) -> None:
    with pytest.raises(MissingKeyError, match=r"ANTHROPIC_API_KEY.*ANTHROPIC_BASE_URL"):
        resolve_model("anthropic:claude", directory=tmp_path, environment={"OPENAI_API_KEY": "k"})


@pytest.mark.parametrize(
    ("base_url", "environment", "expected"),
    [
        (None, {"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com"),
        (None, {"ANTHROPIC_API_KEY": "k", "OPENAI_BASE_URL": "http://a/v1"}, "https://api.anthropic.com"),
        ("http://b/v1/", {}, "http://b"),
        (None, {"ANTHROPIC_BASE_URL": "http://c/anthropic"}, "http://c/anthropic"),
    ],
)
async def test_key_and_base_url_of_anthropic(
    base_url: str | None,
    environment: dict[str, str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of the process")
    model: Any = resolve_model("anthropic:claude-x", directory=tmp_path, base_url=base_url, environment=environment)
    client = model._endpoint._client.library
    assert str(client.base_url).rstrip("/") == expected
    assert (client.api_key, client.auth_token) == (environment.get("ANTHROPIC_API_KEY", "none"), None)
    assert (model.name, client.max_retries) == ("anthropic:claude-x", 0)
    await model.aclose()


@pytest.mark.parametrize("spec", ["openai:gpt-6-luna", "chat:qwen3:8b"])
def test_a_missing_key_is_told_before_anything_is_sent(spec: str, tmp_path: Path) -> None:
    with pytest.raises(MissingKeyError, match=r"OPENAI_API_KEY.*--base-url.*harness-nb demo digits"):
        resolve_model(spec, directory=tmp_path, environment={"OPENAI_API_KEY": ""})


@pytest.mark.parametrize(
    ("base_url", "environment", "expected"),
    [
        (None, {"OPENAI_API_KEY": "sk-1"}, ("https://api.openai.com/v1", "sk-1")),
        (None, {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": ""}, ("https://api.openai.com/v1", "sk-1")),
        (None, {"OPENAI_BASE_URL": "http://localhost:1/v1"}, ("http://localhost:1/v1", "none")),
        ("http://b/v1", {"OPENAI_BASE_URL": "http://a/v1", "OPENAI_API_KEY": "sk-1"}, ("http://b/v1", "sk-1")),
        ("http://b/v1", {"OPENAI_API_KEY": "  "}, ("http://b/v1", "none")),
    ],
)
@pytest.mark.parametrize("kind", ["openai", "chat"])
async def test_key_and_base_url(
    kind: str,
    base_url: str | None,
    environment: dict[str, str],
    expected: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://of.the.process/v1")  # only the environment that is given counts
    monkeypatch.setenv("OPENAI_API_KEY", "of the process")
    model: Any = resolve_model(f"{kind}:qwen3:8b", directory=tmp_path, base_url=base_url, environment=environment)
    client = model._endpoint._client.library
    assert (str(client.base_url).rstrip("/"), client.api_key) == expected
    assert model.name == f"{kind}:qwen3:8b"
    assert client.max_retries == 0
    await model.aclose()


def test_a_base_url_without_a_scheme_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        resolve_model("chat:x", directory=tmp_path, base_url="localhost:11434/v1", environment={})


def test_scripts_and_records_are_relative_to_the_directory(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "demo.json").write_text(json.dumps([{"text": "hi"}]))
    model = resolve_model("scripted:in/demo.json", directory=tmp_path, environment={})
    assert model.name == "scripted:in/demo.json"
    with pytest.raises(UsageError, match="no record of a session"):
        resolve_model("replay:in", directory=tmp_path, environment={})
