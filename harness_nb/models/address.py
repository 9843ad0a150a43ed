"""Where a server is, and how its key is shown, out of a base URL as people write it. Pure.

``openai_client`` and ``resolve_model`` use it. Azure has two forms (Microsoft's "Azure OpenAI REST API reference"):
the newer one under ``/openai/v1/`` is like OpenAI's own, the classic one has the deployment in its path and needs an
``api-version``; ``chat:DEPLOYMENT`` names the deployment in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit, urlunsplit

AZURE_HOSTS = ("openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com")
KEY_NAMES = {
    **dict.fromkeys(AZURE_HOSTS, "AZURE_OPENAI_API_KEY"),
    "openrouter.ai": "OPENROUTER_API_KEY",
    "api.mistral.ai": "MISTRAL_API_KEY",
    "api.deepseek.com": "DEEPSEEK_API_KEY",
    "api.groq.com": "GROQ_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
"""The variable that usually holds the key for a host; it comes before ``OPENAI_API_KEY`` there."""


@dataclass(frozen=True, slots=True)
class Address:
    """A base URL without its query, the query, and the headers that show the key where ``bearer`` does not."""

    base_url: str
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    bearer: bool = True


def read_address(base_url: str, api_key: str, model: str) -> Address:
    """The address of ``model`` at ``base_url``, whose query (``?api-version=…``) goes with each request."""
    parts = urlsplit(base_url)
    query = dict(parse_qsl(parts.query))
    path = parts.path.rstrip("/")
    if not is_azure(base_url):
        return Address(urlunsplit((parts.scheme, parts.netloc, path, "", "")), query)
    if "api-version" in query and path in ("", "/openai"):
        path = f"/openai/deployments/{model}"
    elif path in ("", "/openai"):
        path = "/openai/v1"
    path = path.removesuffix("/chat/completions").removesuffix("/responses")
    bearer = api_key.count(".") == 2 and api_key.startswith("eyJ")  # a token of Entra ID, and not a key
    return Address(
        urlunsplit((parts.scheme, parts.netloc, path, "", "")), query, {} if bearer else {"api-key": api_key}, bearer
    )


def is_azure(base_url: str) -> bool:
    """Whether this is one of Azure's hosts for models."""
    return _is_at(base_url, AZURE_HOSTS)


def find_key(base_url: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """The key for a server of OpenAI's kind, empty if there is none, and the name of the variable that holds it."""
    own = next((name for host, name in KEY_NAMES.items() if _is_at(base_url, (host,))), None)
    for name in (own, "OPENAI_API_KEY"):
        if name and (key := environment.get(name, "").strip()):
            return key, name
    return "", own or "OPENAI_API_KEY"


def _is_at(base_url: str, hosts: tuple[str, ...]) -> bool:
    host = urlsplit(base_url).hostname or ""
    return any(host == known or host.endswith(f".{known}") for known in hosts)
