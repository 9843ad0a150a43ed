"""What went wrong at a provider, as one of the typed errors of ``harness_nb.errors``.

One classification for HTTP statuses, for error events in the middle of a stream and for the errors of a script. All
adapters use it; it is pure and must not import a provider's library.

Codes and texts are those of the OpenAI API reference ("Error codes", ``ResponseError``), of Anthropic's ("Errors", and
the error types of its library) and of the servers that speak these protocols: Azure, llama.cpp
(``exceed_context_size_error``), vLLM ("maximum context length"), LM Studio ("greater than the context length"),
Google's compatible endpoint, OpenRouter (numeric codes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import time
from typing import Any

from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    RefusalError,
    TransientModelError,
)

MESSAGE_LIMIT = 600
"""Characters of a provider's own words that are passed on."""

QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "contract_spend_limit_reached",
        "credit_balance_too_low",
        "enforced_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "linked_organization_spend_limit_reached",
        "organization_on_hold",
    }
)
QUOTA_TEXT = re.compile(r"credit balance is too low|specified API usage limits", re.IGNORECASE)
KEY_CODES = frozenset({"invalid_api_key", "authentication_error", "permission_error", "account_deactivated"})
OVERFLOW_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "request_too_large", "model_max_prompt_tokens_exceeded"}
)
REFUSAL_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "invalid_prompt",
        "bio_policy",
        "cyber_policy_violation",
        "misalignment_policy_violation",
        "responsibleaipolicyviolation",
    }
)
TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
TRANSIENT_CODES = frozenset(
    {"rate_limit_exceeded", "rate_limit_error", "server_error", "overloaded_error", "slow_down", "vector_store_timeout"}
)
LASTING_CODES = re.compile(r"^(invalid|unsupported|unknown_parameter|missing|image|data_residency|(model_)?not_found)")
"""Codes that say, without a status, that the same request would fail again."""

OVERFLOW_TEXT = re.compile(
    r"maximum context length|context length exceeded|greater than the context length|available context size"
    r"|exceeds? the (model's )?context|context window|prompt is too long|input token count|request too large"
    r"|reduce the length of the (messages|prompt|input)|exceed context limit|context size has been exceeded"
    r"|context length of only|maximum prompt length|input is too long|token count of [\d,]+ exceeds"
    r"|max_new_tokens. must be <=|too large for model with",
    re.IGNORECASE,
)
ADVICE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(says, re.IGNORECASE | re.DOTALL), advice)
    for says, advice in (
        (r"enable-auto-tool-choice", "Start vLLM with --enable-auto-tool-choice --tool-call-parser NAME."),
        (r"requires? --jinja", "Start llama-server with --jinja."),
        (r"not support (tool|function)|no endpoints found that support tool", "Name a model that can call tools."),
        (r"try pulling it|model .{1,80} not found", "Pull it (`ollama pull NAME`), or name a model that is there."),
        (r"no models? loaded", "Load a model in the server first."),
        (r"unexpected endpoint", "Check the base URL (it often ends in /v1)."),
        (r"web_search", "This model or its server has no search of the web: leave --web out."),
        (r"deployment .{0,60}does not exist|DeploymentNotFound", "On Azure NAME is the name of your deployment."),
    )
)
"""What to do about complaints of known servers, in which they do not say it or say it in their own terms."""

LASTING_TEXT = re.compile(r"unexpected endpoint", re.IGNORECASE)
"""LM Studio says it with status 200."""

HOPELESS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"certificate.verify.failed", re.IGNORECASE),
        "The certificates of this system do not vouch for the server: add its authority to them, or name a file with "
        "it in SSL_CERT_FILE.",
    ),
    (
        re.compile(r"wrong.version.number|record.layer.failure|packet.length.too.long", re.IGNORECASE),
        "The server does not speak TLS there: the base URL of a local one begins with http://, not with https://.",
    ),
)
"""Failures of connections that another attempt cannot mend, and what can."""

REFUSED = re.compile(r"connection attempts failed|refused|not known|getaddrinfo", re.IGNORECASE)
NOBODY_THERE = "Is the server running, and is the base URL right?"

WAIT_TEXT = re.compile(r"(?:try again|retry) in (?:(\d+)m)?(\d+(?:\.\d+)?)(ms|s)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Complaint:
    """What a provider says of a failure: its words, its code and its kind (the ``type`` of an error object)."""

    message: str
    code: str | None = None
    kind: str | None = None
    status: int | None = None


def read_complaint(value: object) -> Complaint:
    """The complaint in a decoded error body or event, in the shapes that providers use.

    ``{"error": {"message", "code", "type"}}``, Anthropic's with ``details.error_code``, ``{"error": "text"}``,
    ``{"message", "code"}``, ``{"detail": …}``, a list of such objects, or plain text. A numeric code is taken for an
    HTTP status.
    """
    if isinstance(value, list) and value:
        return read_complaint(value[0])
    if not isinstance(value, Mapping):
        return Complaint(message=_plain(str(value or "")))
    inner = value.get("error")
    if isinstance(inner, Mapping):
        return read_complaint({key: item for key, item in inner.items() if key != "error"})
    text = inner if isinstance(inner, str) else value.get("message") or value.get("detail") or ""
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False)
    details = value.get("details")
    code, kind = value.get("code"), value.get("type")
    if code is None and isinstance(details, Mapping):
        code = details.get("error_code")
    numeric = isinstance(code, int) or (isinstance(code, str) and code.isdigit())
    return Complaint(
        message=_plain(text),
        code=None if code is None or numeric else str(code),
        kind=kind if isinstance(kind, str) and kind != "error" else None,
        status=int(code) if code is not None and numeric and 400 <= int(code) <= 599 else None,
    )


def read_error_body(text: str) -> Complaint:
    """The complaint in the body of an error reply: JSON, a web page or plain text."""
    try:
        return read_complaint(json.loads(text))
    except (ValueError, RecursionError):
        return Complaint(message=_plain(text))


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ``retry-after-ms`` or ``retry-after`` (seconds or an HTTP date) ask to wait."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except (ValueError, TypeError):
        return None


def model_error(
    where: str,
    complaint: Complaint,
    *,
    status: int | None = None,
    retry_after: float | None = None,
    should_retry: bool | None = None,
    key_name: str = "OPENAI_API_KEY",
) -> ModelError:
    """The typed error for a complaint of the server at ``where``.

    ``status`` is the HTTP status where there is one, ``retry_after`` is in seconds, ``should_retry`` is the server's
    own word on it (header ``x-should-retry``), ``key_name`` the environment variable that holds the key.
    """
    status = status or complaint.status
    codes = {name.lower() for name in (complaint.code, complaint.kind) if name}
    kind, advice = _classify(status, codes, complaint.message, should_retry)
    if kind is AuthenticationError:
        advice = f"Check the API key and what it may use ({key_name})."
    advice = next((said for says, said in ADVICE if says.search(complaint.message)), advice)
    label = " ".join(part for part in (str(status or ""), f"({complaint.code})" if complaint.code else "") if part)
    text = f"{where} answered with an error {label}".rstrip()
    text += f": {complaint.message.rstrip('. ')}." if complaint.message else "."
    if retry_after is None:
        retry_after = _wait_in_text(complaint.message)
    code = complaint.code or complaint.kind
    return kind(f"{text} {advice}".strip(), code=code, status=status, retry_after=retry_after)


def connection_error(where: str, cause: str) -> ModelError:
    """The typed error for a connection to ``where`` that could not be made or was lost; ``cause`` says why."""
    text = f"The connection to {where} failed: {cause.rstrip('. ')}."
    advice = next((said for says, said in HOPELESS if says.search(cause)), None)
    if advice is not None:
        return ModelError(f"{text} {advice}")
    return TransientModelError(f"{text} {NOBODY_THERE}" if REFUSED.search(cause) else text)


def _classify(
    status: int | None, codes: set[str], message: str, should_retry: bool | None
) -> tuple[type[ModelError], str]:
    """The class of a failure, and a word on the way out."""
    if codes & QUOTA_CODES or status == 402 or QUOTA_TEXT.search(message):
        return QuotaError, "The account has no credit or quota left; add some, then go on with this session."
    if status in (401, 403) or codes & KEY_CODES:
        return AuthenticationError, ""
    if codes & OVERFLOW_CODES or status == 413 or OVERFLOW_TEXT.search(message):
        return ContextOverflowError, ""
    if codes & REFUSAL_CODES:
        return RefusalError, ""
    if status == 404:
        return (
            ModelError,
            "Check the model's name and the base URL; a server without this API may have chat:NAME.",
        )
    if LASTING_TEXT.search(message):
        return ModelError, ""
    if should_retry is not None:
        return (TransientModelError if should_retry else ModelError), ""
    if codes & TRANSIENT_CODES:
        return TransientModelError, ""
    if status is not None:
        return (TransientModelError if status in TRANSIENT_STATUSES or status >= 500 else ModelError), ""
    lasting = any(LASTING_CODES.match(code) for code in codes)
    return (ModelError if lasting else TransientModelError), ""


def _wait_in_text(message: str) -> float | None:
    """Seconds in "Please try again in 1m2.5s", where rate limits in the middle of a stream say it."""
    found = WAIT_TEXT.search(message)
    if not found:
        return None
    minutes, amount, unit = found.groups()
    return int(minutes or 0) * 60 + float(amount) / (1000 if unit.lower() == "ms" else 1)


def _plain(text: str) -> str:
    """One bounded paragraph; of a web page only its title."""
    if re.match(r"\s*<(!doctype|html|head|\?xml)", text, re.IGNORECASE):
        title: Any = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        text = f"a web page titled {' '.join(title[1].split())!r}" if title else "a web page"
    text = " ".join(text.split())
    return text if len(text) <= MESSAGE_LIMIT else text[:MESSAGE_LIMIT] + " …"
