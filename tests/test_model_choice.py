"""Which models the settings mean, and what is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_nb.approval import DenyApprover
from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.model_choice import Models, model_for, small_model_for
from harness_nb.models.remote import RemoteModel
from harness_nb.session import Session
from harness_nb.settings import Settings

LOCAL = "http://127.0.0.1:9/v1"


def settings_for(workspace: Path, **given: Any) -> Settings:
    return Settings.load(workspace, given, {})


def script(folder: Path, name: str = "script.json") -> str:
    (folder / name).write_text(json.dumps([{"text": "Fine."}]))
    return f"scripted:{folder / name}"


async def test_a_cost_limit_that_cannot_be_kept_refuses_to_start(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, model="chat:qwen", base_url=LOCAL, max_cost=1.0)
    with pytest.raises(UsageError) as refused:
        await Session.open(settings, DenyApprover())
    said = str(refused.value)
    assert "The price of chat:qwen is not known, so --max-cost 1 cannot be kept." in said
    assert "[tool.harness-nb.prices]" in said and '"chat:qwen" = { input = ' in said and "--max-tokens" in said
    assert not (tmp_path / "harness_sessions").exists()


async def test_the_rates_that_the_refusal_names_let_it_start(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, model="chat:qwen", base_url=LOCAL, max_cost=1.0)
    with pytest.raises(UsageError) as refused:
        Models(settings).ready()
    lines = [line.strip() for line in str(refused.value).splitlines() if line.startswith("  ")]
    (tmp_path / "pyproject.toml").write_text("\n".join(lines))
    settings = settings_for(tmp_path, model="chat:qwen", base_url=LOCAL, max_cost=1.0)
    models = Models(settings)
    model = models.ready()
    assert isinstance(model, RemoteModel) and model.price_known
    assert settings.options == {"model": "chat:qwen", "base_url": LOCAL, "max_cost": 1.0}, "prices are not recorded"
    await models.aclose()


def test_a_price_that_is_wrong_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.harness-nb.prices]\n"chat:qwen" = { input = -1, output = 2 }\n')
    with pytest.raises(UsageError, match="chat:qwen"):
        model_for(settings_for(tmp_path, model="chat:qwen", base_url=LOCAL))


async def test_a_small_model_without_a_price_refuses_too(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, model=script(tmp_path), small_model="chat:tiny", base_url=LOCAL, max_cost=1.0)
    with pytest.raises(MissingKeyError, match="chat:tiny"):
        Models(settings).ready()  # the base URL is meant for the model, which is a script here
    settings = settings_for(tmp_path, model="chat:big", small_model="chat:tiny", base_url=LOCAL, max_cost=1.0)
    settings = settings.model_copy(update={"prices": {"chat:big": {"input": 1, "output": 1}}})
    with pytest.raises(UsageError, match="The price of chat:tiny"):
        Models(settings).ready()


async def test_the_base_url_is_for_models_of_the_same_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789")
    settings = settings_for(tmp_path, model="chat:big", small_model="anthropic:claude-haiku", base_url=LOCAL)
    small = small_model_for(settings)
    assert isinstance(small, RemoteModel) and "anthropic.com" in small._endpoint.base_url
    also = small_model_for(settings_for(tmp_path, model="chat:big", small_model="openai:tiny", base_url=LOCAL))
    assert isinstance(also, RemoteModel) and also._endpoint.base_url.startswith(LOCAL)
    assert small_model_for(settings_for(tmp_path, model="chat:big", base_url=LOCAL)) is None
    for model in (small, also):
        await model.aclose()


@pytest.mark.parametrize("spec", ["chat:qwen", "scripted"])
async def test_the_web_can_be_read_where_the_api_has_no_search(tmp_path: Path, spec: str) -> None:
    model = script(tmp_path) if spec == "scripted" else spec
    session = await Session.open(settings_for(tmp_path, model=model, base_url=LOCAL, web=True), DenyApprover())
    assert session.model_name == model if spec != "scripted" else session.model_name.startswith("scripted:")
    await session.aclose()


async def test_models_change_only_with_what_names_them(tmp_path: Path) -> None:
    one, two = script(tmp_path), script(tmp_path, "two.json")
    models = Models(settings_for(tmp_path, model=one, small_model=two))
    main = models.ready()
    small = models.small
    await models.use(settings_for(tmp_path, model=one, small_model=two, max_turns=3), needed=True)
    assert models.main is main and models.small is small
    await models.use(settings_for(tmp_path, model=two), needed=True)
    assert models.main is not main and models.main is not None and models.main.name == two
    assert models.small is None
    before = models.main
    with pytest.raises(UsageError, match="absent"):
        await models.use(settings_for(tmp_path, model="scripted:absent.json"), needed=True)
    assert models.main is before
    await models.use(settings_for(tmp_path, model="scripted:absent.json"), needed=False)
    assert models.main is None, "a recording is played; the model is looked for when it is needed"
