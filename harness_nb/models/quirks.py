"""What servers do differently, as data. Adapters read the flags; no code asks which server it is talking to.

The flags of a known host come from a table; what a server rejects is learnt from its complaint, for the life of the
model: the same request is then sent again at once without the thing. Only what harness_nb adds on its own can be left
out in this way; what the user asked for is never dropped silently. ``endpoint`` applies it.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Quirks:
    """How to talk to one server.

    ``echo_reasoning``: earlier reasoning must come back in later requests (Chat Completions). ``provider_items``: a
    reply's own items go back as they came (Responses). ``images``: pictures may be sent. ``strict``: tools carry
    ``strict: false`` (Responses). Anthropic's API: ``cache_marks`` are set, ``adaptive_thinking`` is how an effort is
    asked for, and ``max_output_tokens`` is what is sent where the user has set no limit, for the API needs one.
    """

    stream: bool = True
    images: bool = True
    cache_key: bool = True
    usage_in_stream: bool = True
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    echo_reasoning: bool = False
    encrypted_reasoning: bool = True
    reasoning_summary: bool = True
    provider_items: bool = True
    strict: bool = True
    cache_marks: bool = True
    adaptive_thinking: bool = True
    max_output_tokens: int = 32_000


RESPONSES = Quirks()
ANTHROPIC = Quirks()
CHAT = Quirks(cache_key=False)

KNOWN_CHAT_HOSTS: dict[str, Quirks] = {
    "api.openai.com": Quirks(max_tokens_name="max_completion_tokens"),
    "openai.azure.com": Quirks(cache_key=False, max_tokens_name="max_completion_tokens"),
    "api.deepseek.com": Quirks(cache_key=False, echo_reasoning=True),
    "api.moonshot.ai": Quirks(cache_key=False, echo_reasoning=True),
    "api.moonshot.cn": Quirks(cache_key=False, echo_reasoning=True),
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A complaint whose text ``says`` this teaches ``change``; named groups are numbers that it teaches too."""

    says: re.Pattern[str]
    change: dict[str, Any] = field(default_factory=dict)


def _lesson(pattern: str, **change: Any) -> Lesson:
    return Lesson(re.compile(pattern, re.IGNORECASE | re.DOTALL), change)


LESSONS: tuple[Lesson, ...] = (
    _lesson(r"invalid_encrypted_content|could not be (decrypted|verified)|not persisted|required following item",
            provider_items=False),
    _lesson(r"encrypted[ _]content|\binclude\b(?!_)", encrypted_reasoning=False),
    _lesson(r"reasoning\.summary|reasoning summar|generate_summary", reasoning_summary=False),
    _lesson(r"prompt_cache_key", cache_key=False),
    _lesson(r"stream_options|include_usage", usage_in_stream=False),
    _lesson(r"cache_control", cache_marks=False),
    _lesson(r"\badaptive\b|output_config|\beffort\b", adaptive_thinking=False),
    _lesson(r"max_tokens: \d+ > (?P<max_output_tokens>\d+)"),
    _lesson(r"max_completion_tokens", max_tokens_name="max_completion_tokens"),
    _lesson(r"max_completion_tokens", max_tokens_name="max_tokens"),
    _lesson(r"reasoning_content", echo_reasoning=True),
    _lesson(r"\bstrict\b", strict=False),
    _lesson(r"\bimages?\b|image_url|input_image|\bvision\b|multi-?modal", images=False),
    _lesson(r"stream\w*.{0,60}(not|un)\s?-?supported|(not|un)\s?-?support.{0,60}stream", stream=False),
)  # fmt: skip


def chat_quirks(base_url: str) -> Quirks:
    """The flags for Chat Completions at ``base_url``."""
    host = urlsplit(base_url).hostname or ""
    for known, quirks in KNOWN_CHAT_HOSTS.items():
        if host == known or host.endswith(f".{known}"):
            return quirks
    return CHAT


def learn(quirks: Quirks, complaint: str, used: Set[int]) -> tuple[Quirks, int] | None:
    """The flags after a rejected request, and the number of the lesson; ``None`` if the complaint teaches nothing.

    ``used`` are the lessons that this request has already taught: each counts once, so that a server that rejects both
    of two spellings is not asked for ever.
    """
    for number, lesson in enumerate(LESSONS):
        found = None if number in used else lesson.says.search(complaint)
        if not found:
            continue
        taught = lesson.change | {name: int(digits) for name, digits in found.groupdict().items()}
        changed = replace(quirks, **taught)
        if changed != quirks:
            return changed, number
    return None
