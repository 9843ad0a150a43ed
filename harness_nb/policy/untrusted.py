"""Steps right after untrusted text: what counts as such, and which calls are then asked about. Pure.

Untrusted is what anybody could have written for a model to read: pages of the web, what a command brought from the
network, and files that it left. The classifier is told of it (``ports.Question.untrusted``), and the rule here asks
before a call that could do what such text wants most: send, delete, or use credentials.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence

from harness_nb.policy.rules import Rule
from harness_nb.policy.web import WEB_FETCH
from harness_nb.types import Decision, Message, ToolCall

POLICY = "ask_after_untrusted_text"

_BRINGS = re.compile(
    r"\b(?:curl|wget|aria2c|httpie|git\s+(?:clone|fetch|pull)|hf\s+download|gsutil\s+cp|aws\s+s3)\b"
    r"|\b(?:urlopen|urlretrieve|requests\.(?:get|post|request|Session)|httpx2?\.\w+|aiohttp|read_html|load_dataset"
    r"|snapshot_download|hf_hub_download)\b"
)
"""What brings something from the network, in a command or in Python."""

_NAMES = re.compile(
    r"(?:-o|-O|--output|--output-document|>)[ =]*['\"]?(?P<file>[\w./~-]{2,})"
    r"|(?:urlretrieve\([^,)]*,|open\(|Path\()\s*['\"](?P<path>[\w./~-]{2,})['\"]"
    r"|(?:wget|curl\s+-\w*O\w*)\s[^|;&\n]*?https?://[^\s'\"]*/(?P<last>[\w.-]{2,})"
)
"""The names of files that such a call leaves."""

_SENDS = re.compile(
    r"(?<![\w./-])(?:curl|wget|nc|ncat|ssh|scp|sftp|rsync|ftp|telnet|socat)\b|/dev/tcp/|%pip\b|\bpip3?\s+install\b"
    r"|\bgit\s+(?:push|remote|clone|fetch|pull)\b|\bnpm\s+(?:i|install|publish)\b"
    r"|\b(?:requests|urllib|httpx2?|aiohttp|socket|smtplib|ftplib|paramiko|boto3)\b"
)
_DELETES = re.compile(
    r"\brm\s|\b(?:rmdir|unlink|rmtree|shred|truncate)\b|\bos\.remove\b|\bgit\s+(?:clean|reset)\b|\s-delete\b"
)
_CREDENTIALS = re.compile(
    r"\.(?:ssh|aws|gnupg|netrc|pypirc|kube|docker)\b|\.env\b|id_(?:rsa|ed25519)|\bkeyring\b|os\.environ|\bgetenv\b"
    r"|(?m:^|[;&|])\s*(?:printenv|env)(?=\s*(?:$|[|>;&]))|(?i:\b(?:passwords?|secrets?|credentials?|api_?keys?)\b)"
)
_RUNS = re.compile(r"\|\s*(?:ba|z|da)?sh\b|\b(?:eval|exec)\s*\(|(?m:^|[;&|])\s*(?:eval|source)\s")
_DOES = (
    ("reaches the network", _SENDS),
    ("deletes", _DELETES),
    ("uses credentials", _CREDENTIALS),
    ("runs what a text says", _RUNS),
)
"""What untrusted text wants most, and how a call that does it reads."""


def untrusted_before(history: Sequence[Message]) -> str:
    """What untrusted text stands right before the calls of the last reply, as a clause; empty where there is none.

    ``history`` is the conversation so far. Right before are the results between that reply and the one before it, and
    what the provider's own search of the web brought into the reply itself.
    """
    last = next((at for at in range(len(history) - 1, -1, -1) if history[at].role == "assistant"), -1)
    if last < 0:
        return ""
    if any("web_search" in str(item.get("type", "")) or "server_tool" in str(item.get("type", ""))
           for item in history[last].provider_items):  # fmt: skip
        return "a search of the web"
    calls = {call.call_id: call for message in history[:last] for call in message.tool_calls}
    downloaded = files_brought(history[:last])
    for message in reversed(history[:last]):
        if message.role == "assistant":
            break
        call = calls.get(message.call_id or "") if message.role == "tool" else None
        if call is not None and (told := _brought(call, downloaded)):
            return told
    return ""


def files_brought(history: Sequence[Message]) -> set[str]:
    """The names of files that calls so far have brought from the network, as far as their text tells."""
    found: set[str] = set()
    for source in (_text(call) for message in history for call in message.tool_calls):
        if _BRINGS.search(source):
            for match in _NAMES.finditer(source):
                name = posixpath.basename(next(filter(None, match.groups()), "").rstrip("/"))
                if len(name) > 1 and name not in ("null", "stdout", "stderr"):
                    found.add(name)
    return found


def ask_after_untrusted_text(before: Callable[[], str]) -> Rule:
    """A rule that asks, right after untrusted text, before calls that send, delete, or use credentials.

    ``before`` says what untrusted text there is, if any.
    """

    def ask_after_untrusted(call: ToolCall, source: str) -> Decision | None:
        if call.name == WEB_FETCH:
            does: str | None = "sends an address to a server"
        else:
            does = next((does for does, pattern in _DOES if pattern.search(_text(call))), None)
        if call.name not in ("python", "bash", WEB_FETCH) or does is None or not (text := before()):
            return None
        reason = f"it {does}, right after {text}, which may hold orders of somebody else: {_shown(call)}"
        return Decision(verdict="ask", reason=reason, policy=POLICY)

    return ask_after_untrusted


def _brought(call: ToolCall, downloaded: set[str]) -> str:
    """What a call has brought from outside, as a clause."""
    if call.name == WEB_FETCH:
        return f"the page {str(call.arguments.get('url', ''))[:200]}"
    source = _text(call)
    if call.name in ("python", "bash") and _BRINGS.search(source):
        return "what was fetched from the network"
    path = posixpath.basename(str(call.arguments.get("path", "")))
    if call.name in ("read_file", "view_image") and path in downloaded:
        return f"the downloaded file {path}"
    names = [name for name in downloaded if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", source)]
    return f"the downloaded file {names[0]}" if call.name in ("python", "bash") and names else ""


def _text(call: ToolCall) -> str:
    return str(call.arguments.get("code") or call.arguments.get("command") or "")


def _shown(call: ToolCall) -> str:
    text = str(call.arguments.get("url") or _text(call))
    return " ".join(text.split())[:300]
