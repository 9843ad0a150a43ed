"""What servers do differently, as data. Adapters read the flags; no code asks which server it is talking to.

The flags of a known host, or of a model's name, come from a table; what a server rejects is learnt from its complaint,
for the life of the model: the same request is then sent again at once without the thing. Only what harness_nb adds on
its own can be left out in this way; what the user asked for is never dropped silently. ``endpoint`` applies it.
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

    All APIs: ``images`` may be sent, but only the last ``image_limit``; ``text_forms``: thinking and calls may come in
    the text and are looked for there (see ``text_forms``); ``max_output_tokens`` is sent where the user has set no
    limit and the API needs one (Anthropic's).

    Chat Completions: ``system_role`` is how the system prompt is sent (``user``: in the first user message);
    ``merge_users``: user messages in a row are one; ``assistant_after_tool``: between a result and a user message
    stands a reply; ``single_calls``: each call of a reply is a reply of its own; ``short_ids``: ids of calls have nine
    letters or digits; ``object_arguments``: arguments are objects and not texts; ``null_content``: so is the content of
    a reply without text; ``plain_schemas``: only the plainest words of JSON Schema; ``effort_form`` is how an effort is
    asked for; ``echo_reasoning``: earlier reasoning must come back; ``cost_in_usage``: the server tells the price.

    Responses: ``provider_items``: a reply's own items go back as they came; ``strict``: tools carry ``strict: false``.
    Anthropic's: ``cache_marks`` are set; ``adaptive_thinking`` is how an effort is asked for.
    """

    stream: bool = True
    images: bool = True
    image_limit: int | None = None
    text_forms: bool = True
    cache_key: bool = True
    usage_in_stream: bool = True
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    system_role: Literal["system", "developer", "user"] = "system"
    merge_users: bool = False
    assistant_after_tool: bool = False
    single_calls: bool = False
    short_ids: bool = False
    object_arguments: bool = False
    null_content: bool = True
    plain_schemas: bool = False
    effort_form: Literal["reasoning_effort", "reasoning", "thinking", "enable_thinking"] = "reasoning_effort"
    echo_reasoning: bool = False
    cost_in_usage: bool = False
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

RESPONSES_HOSTS: dict[str, dict[str, Any]] = {
    "api.openai.com": {"text_forms": False},
    "openai.azure.com": {"text_forms": False},
}
ANTHROPIC_HOSTS: dict[str, dict[str, Any]] = {"api.anthropic.com": {"text_forms": False}}
CHAT_HOSTS: dict[str, dict[str, Any]] = {
    "api.openai.com": {"cache_key": True, "max_tokens_name": "max_completion_tokens", "text_forms": False},
    "openai.azure.com": {"max_tokens_name": "max_completion_tokens", "text_forms": False},
    "api.deepseek.com": {"echo_reasoning": True},
    "api.moonshot.ai": {"echo_reasoning": True},
    "api.moonshot.cn": {"echo_reasoning": True},
    "api.mistral.ai": {"assistant_after_tool": True, "short_ids": True},
    "openrouter.ai": {"echo_reasoning": True, "effort_form": "reasoning", "cost_in_usage": True},
    "api.z.ai": {"effort_form": "thinking", "echo_reasoning": True},
    "open.bigmodel.cn": {"effort_form": "thinking", "echo_reasoning": True},
    "aliyuncs.com": {"effort_form": "enable_thinking"},
}
"""What differs from ``CHAT`` at a host and below it."""

CHAT_MODELS: dict[str, dict[str, Any]] = {
    r"^(openai/)?(o\d|gpt-[5-9])": {"max_tokens_name": "max_completion_tokens"},
    r"mistral|mixtral|ministral|devstral|magistral|codestral": {"short_ids": True},
}
"""What differs by the model's name, wherever it is served."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A complaint whose text ``says`` this teaches ``change``; named groups are numbers that it teaches too.

    ``layout`` lessons are about how a conversation is laid out and what it is made of. Local servers complain of it
    with status 500 (chat templates, and llama.cpp of pictures), where other lessons are not looked for.
    """

    says: re.Pattern[str]
    change: dict[str, Any] = field(default_factory=dict)
    layout: bool = False


def _lesson(pattern: str, *, layout: bool = False, **change: Any) -> Lesson:
    return Lesson(re.compile(pattern, re.IGNORECASE | re.DOTALL), change, layout)


LESSONS: tuple[Lesson, ...] = (
    _lesson(r"length of 9\b", layout=True, short_ids=True),
    _lesson(r"roles? must alternate", layout=True, merge_users=True),
    _lesson(r"role.{0,3}user.{0,20}after.{0,10}role.{0,3}tool", layout=True, assistant_after_tool=True),
    _lesson(r"single tool-?\s?calls? at once", layout=True, single_calls=True),
    _lesson(r"item pairs from a mapping", layout=True, object_arguments=True),
    _lesson(r"\bdeveloper\b.{0,40}instead|must be.{0,10}developer", layout=True, system_role="developer"),
    _lesson(r"(does not|n.t) support\W{1,4}(system|developer)|(system|developer)\W{0,2} ?(role|message)s?.{0,30}"
            r"(not|un)\s?-?(be )?(support|allow)|roles? must alternate", layout=True, system_role="user"),
    _lesson(r"content\W.{0,60}\b(null|none)\b|\b(null|none)\b.{0,30}\bcontent\b|missing.{0,20}content|"
            r"content\W{0,3} (field )?is required", layout=True, null_content=False),
    _lesson(r"image input is not supported|not support multi-?modal", layout=True, images=False),
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
    _lesson(r"additionalProperties|\$(schema|defs|ref)\b|\b(any|one|all)Of\b|exclusiveM|invalid.{0,20} schema",
            plain_schemas=True),
    _lesson(r"at most (?P<image_limit>\d+) image"),
    _lesson(r"(too many|exceed|at most|maximum|limit).{0,80}\bimages?\b|\bimages?\b.{0,80}(too many|exceed|too large|"
            r"at most)|many-image", image_limit=8),
    _lesson(r"\bimages?\b|image_url|input_image|\bvision\b|multi-?modal", images=False),
    _lesson(r"stream\w*.{0,60}(not|un)\s?-?supported|(not|un)\s?-?support.{0,60}stream", stream=False),
)  # fmt: skip


def chat_quirks(base_url: str, model: str = "") -> Quirks:
    """The flags for Chat Completions with ``model`` at ``base_url``."""
    by_name: dict[str, Any] = {}
    for pattern, change in CHAT_MODELS.items():
        if re.search(pattern, model, re.IGNORECASE):
            by_name |= change
    return replace(CHAT, **(by_name | _by_host(CHAT_HOSTS, base_url)))


def responses_quirks(base_url: str) -> Quirks:
    """The flags for the Responses API at ``base_url``."""
    return replace(RESPONSES, **_by_host(RESPONSES_HOSTS, base_url))


def anthropic_quirks(base_url: str) -> Quirks:
    """The flags for Anthropic's Messages API at ``base_url``."""
    return replace(ANTHROPIC, **_by_host(ANTHROPIC_HOSTS, base_url))


def _by_host(table: dict[str, dict[str, Any]], base_url: str) -> dict[str, Any]:
    host = urlsplit(base_url).hostname or ""
    return next((change for known, change in table.items() if host == known or host.endswith(f".{known}")), {})


def learn(quirks: Quirks, complaint: str, used: Set[int], *, layout: bool = False) -> tuple[Quirks, int] | None:
    """The flags after a rejected request, and the number of the lesson; ``None`` if the complaint teaches nothing.

    ``used`` are the lessons that this request has already taught: each counts once, so that a server that rejects both
    of two spellings is not asked for ever. ``layout`` looks only for lessons about the layout of the conversation.
    """
    for number, lesson in enumerate(LESSONS):
        found = None if number in used or (layout and not lesson.layout) else lesson.says.search(complaint)
        if not found:
            continue
        taught = lesson.change | {name: int(digits) for name, digits in found.groupdict().items()}
        changed = replace(quirks, **taught)
        if changed != quirks:
            return changed, number
    return None
