"""Language models behind one port: a spec such as ``openai:gpt-6-luna`` in, a ``ports.Model`` out.

The session calls ``resolve_model``. Importing this package loads no provider's library; each adapter is imported when
its spec is resolved. ``anthropic`` and other providers add a module and a line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness_nb.errors import MissingKeyError, UsageError
from harness_nb.ports import Model

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "openai:gpt-6-luna"

SPEC_FORMS = """\
  openai:NAME            OpenAI's Responses API (needs OPENAI_API_KEY, or a base URL)
  chat:NAME              Chat Completions at OPENAI_BASE_URL or --base-url: Ollama, vLLM, llama.cpp, LM Studio, …
  scripted:FILE.json     replies from a file, no network
  replay:SESSION         the recorded replies of a session (its id, journal, notebook or folder), no network"""

WITHOUT_KEY = (
    "Without a key: `harness-nb demo digits` shows the whole job with a scripted model, and "
    "`--model scripted:FILE.json` plays a script of yours."
)

__all__ = ["DEFAULT_MODEL", "SPEC_FORMS", "default_model_spec", "resolve_model"]


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


def resolve_model(spec: str, *, directory: Path, base_url: str | None = None, environment: Mapping[str, str]) -> Model:
    """The model that ``spec`` names. Nothing is sent yet; the caller closes the model with ``aclose``.

    ``directory`` is the workspace, where relative paths of scripts and records start. ``base_url`` comes before
    ``OPENAI_BASE_URL`` of ``environment``; with either of them the key may be missing, as local servers need none.

    Raises:
        UsageError: if the spec has no known form, or its script or record cannot be read.
        MissingKeyError: if the model needs a key and none is set.
    """
    kind, _, name = spec.strip().partition(":")
    if kind == "anthropic":
        raise UsageError(f"{spec}: anthropic: models come with a later version. A model is one of\n{SPEC_FORMS}")
    if not name or kind not in ("openai", "chat", "scripted", "replay"):
        raise UsageError(f"There is no model {spec!r}. A model is one of\n{SPEC_FORMS}")
    if kind == "scripted":
        from harness_nb.models.scripted import ScriptedModel, read_script

        path = directory / name
        return ScriptedModel(spec, read_script(path if path.exists() else Path(name)))
    if kind == "replay":
        from harness_nb.models.replay import ReplayModel, find_record, read_replies

        return ReplayModel(spec, read_replies(find_record(name, directory)))
    url = (base_url or environment.get("OPENAI_BASE_URL", "")).strip()
    key = environment.get("OPENAI_API_KEY", "").strip()
    if not key and not url:
        raise MissingKeyError(
            f"{spec} needs OPENAI_API_KEY, or a base URL of a server that takes no key (OPENAI_BASE_URL or --base-url, "
            f"for example http://localhost:11434/v1 for Ollama). {WITHOUT_KEY}"
        )
    if url and not url.startswith(("http://", "https://")):
        raise UsageError(f"The base URL {url!r} must begin with http:// or https://.")
    if kind == "openai":
        from harness_nb.models.responses import ResponsesModel

        return ResponsesModel(name, base_url=url or OPENAI_URL, api_key=key or "none")
    from harness_nb.models.chat import ChatModel

    return ChatModel(name, base_url=url or OPENAI_URL, api_key=key or "none")
