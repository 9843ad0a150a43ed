"""Language models behind one port: a spec such as ``openai:gpt-6-luna`` in, a ``ports.Model`` out.

The session calls ``resolve_model``. Importing this package loads no provider's library; each adapter is imported when
its spec is resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.models.address import find_key
from harness_nb.ports import Model

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
DEFAULT_MODEL = "openai:gpt-6-luna"

REMOTE = {
    "openai": ("OPENAI", "http://localhost:11434/v1"),
    "chat": ("OPENAI", "http://localhost:11434/v1"),
    "anthropic": ("ANTHROPIC", "http://localhost:11434"),
}
"""The kinds of models behind HTTP: how their variables begin, and a base URL of a local server."""

SPEC_FORMS = """\
  openai:NAME            OpenAI's Responses API (needs OPENAI_API_KEY, or a base URL)
  chat:NAME              Chat Completions at OPENAI_BASE_URL or --base-url: Ollama, vLLM, llama.cpp, LM Studio, …
  anthropic:NAME         Anthropic's Messages API (needs ANTHROPIC_API_KEY and pip install "harness-nb[anthropic]")
  scripted:FILE.json     replies from a file, no network
  replay:SESSION         the recorded replies of a session (its id, journal, notebook or folder), no network"""

WITHOUT_KEY = (
    "Without a key: `harness-nb demo digits` shows the whole job with a scripted model, and "
    "`--model scripted:FILE.json` plays a script of yours."
)

__all__ = ["DEFAULT_MODEL", "SPEC_FORMS", "default_model_spec", "key_of", "resolve_model"]


def default_model_spec(environment: Mapping[str, str]) -> str:
    """The model when none is named: ``HARNESS_NB_MODEL``, else ``openai:gpt-6-luna`` if ``OPENAI_API_KEY`` is set.

    Raises:
        MissingKeyError: if neither is set; the text says what to set and which command works without a key.
    """
    if spec := environment.get("HARNESS_NB_MODEL", "").strip():
        return spec
    if environment.get("OPENAI_API_KEY", "").strip():
        return DEFAULT_MODEL
    raise MissingKeyError(
        f"No model is chosen and no key is set. Set OPENAI_API_KEY to use {DEFAULT_MODEL}, or name a model with "
        f"--model or HARNESS_NB_MODEL:\n{SPEC_FORMS}\n{WITHOUT_KEY}"
    )


def resolve_model(
    spec: str,
    *,
    directory: Path,
    base_url: str | None = None,
    environment: Mapping[str, str],
    prices: Mapping[str, Any] | None = None,
) -> Model:
    """The model that ``spec`` names. Nothing is sent yet; the caller closes the model with ``aclose``.

    ``directory`` is the workspace, where relative paths of scripts and records start. ``base_url`` comes before
    ``OPENAI_BASE_URL`` (``ANTHROPIC_BASE_URL``) of ``environment``; with either of them the key may be missing, as
    local servers need none. ``prices`` are the user's own, see ``pricing.read_rates``.

    Raises:
        UsageError: if the spec has no known form, its script or record cannot be read, its library is missing, or a
            price is wrong.
        MissingKeyError: if the model needs a key and none is set.
    """
    kind, _, name = spec.strip().partition(":")
    if not name or kind not in (*REMOTE, "scripted", "replay"):
        raise UsageError(f"There is no model {spec!r}. A model is one of\n{SPEC_FORMS}")
    if kind == "scripted":
        from harness_nb.models.scripted import ScriptedModel, read_script

        path = directory / name
        return ScriptedModel(spec, read_script(path if path.exists() else Path(name)))
    if kind == "replay":
        from harness_nb.models.replay import ReplayModel, find_record, read_replies

        return ReplayModel(spec, read_replies(find_record(name, directory)))
    return _resolve_remote(spec, kind, name, base_url, environment, prices or {})


def _resolve_remote(
    spec: str,
    kind: str,
    name: str,
    base_url: str | None,
    environment: Mapping[str, str],
    prices: Mapping[str, Any],
) -> Model:
    """A model behind HTTP, with its address and key."""
    provider, example = REMOTE[kind]
    url = (base_url or environment.get(f"{provider}_BASE_URL", "")).strip()
    key_name = f"{provider}_API_KEY"
    key = environment.get(key_name, "").strip()
    if provider == "OPENAI":
        key, key_name = find_key(url, environment)
    if not key and not url:
        raise MissingKeyError(
            f"{spec} needs {key_name}, or a base URL of a server that takes no key ({provider}_BASE_URL or "
            f"--base-url, for example {example} for Ollama). {WITHOUT_KEY}"
        )
    if url and not url.startswith(("http://", "https://")):
        raise UsageError(f"The base URL {url!r} must begin with http:// or https://.")
    from harness_nb.models.pricing import read_rates

    key, rates = key or "none", read_rates(prices)
    if kind == "anthropic":
        return _load_anthropic(spec)(name, base_url=url or ANTHROPIC_URL, api_key=key, rates=rates)
    if kind == "openai":
        from harness_nb.models.responses import responses_model

        return responses_model(name, base_url=url or OPENAI_URL, api_key=key, key_name=key_name, rates=rates)
    from harness_nb.models.chat import chat_model

    return chat_model(name, base_url=url or OPENAI_URL, api_key=key, key_name=key_name, rates=rates)


def key_of(spec: str, base_url: str | None, environment: Mapping[str, str]) -> tuple[str, bool]:
    """The variable that holds the key for a model behind HTTP, and whether it is set. The key itself stays there."""
    provider, _ = REMOTE[spec.partition(":")[0]]
    if provider == "OPENAI":
        key, name = find_key((base_url or environment.get("OPENAI_BASE_URL", "")).strip(), environment)
        return name, bool(key)
    return f"{provider}_API_KEY", bool(environment.get(f"{provider}_API_KEY", "").strip())


def _load_anthropic(spec: str) -> Callable[..., Model]:
    """What makes such a model; its library is an extra.

    Raises:
        UsageError: if the library is not installed.
    """
    try:
        from harness_nb.models.anthropic_model import anthropic_model
    except ModuleNotFoundError as error:
        if error.name != "anthropic":
            raise
        raise UsageError(
            f'{spec} needs the library `anthropic`, which is not installed: pip install "harness-nb[anthropic]"'
        ) from error
    return anthropic_model
