"""Rules for ``web_fetch``: what is never fetched, and what is asked about first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from harness_nb.policy.addresses import url_problem
from harness_nb.policy.hosts import SHORTHANDS
from harness_nb.policy.rules import Rule
from harness_nb.types import Decision, ToolCall

WEB_FETCH = "web_fetch"
SHOWN_QUERY = 60
"""Characters behind a host that say little; what is longer may carry data out, and its length is told."""


def deny_local_addresses(call: ToolCall, source: str) -> Decision | None:
    """Only public addresses are fetched, as far as that can be seen of a URL; ``web.fetching`` looks where it leads."""
    if call.name != WEB_FETCH:
        return None
    url = str(call.arguments.get("url", ""))
    if not (problem := url_problem(url)):
        return None
    return Decision(verdict="deny", reason=f"{url[:300]} is not fetched: {problem}", policy="deny_local_addresses")


def ask_before_fetching(hosts: Sequence[str]) -> Rule:
    """A rule that asks before anything is fetched, with the whole URL; not from ``hosts`` (``*`` stands for names)."""

    def ask_before_fetching_from_elsewhere(call: ToolCall, source: str) -> Decision | None:
        if call.name != WEB_FETCH:
            return None
        url = str(call.arguments.get("url", ""))
        if is_allowed_host(url, hosts):
            return None
        return Decision(
            verdict="ask",
            reason=f"it sends this address to a server: {url}{_carried(url)}",
            policy="ask_before_fetching",
        )

    return ask_before_fetching_from_elsewhere


def is_allowed_host(url: str, hosts: Sequence[str]) -> bool:
    """Whether the host of a URL is one of ``hosts``."""
    host = host_of(url)
    return bool(host) and any(fnmatchcase(host, pattern.lower()) for pattern in hosts)


def host_of(url: str) -> str:
    """The host of a URL, empty where it names none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def allowed_hosts(network: str) -> tuple[str, ...]:
    """The hosts that ``--network`` opens to tool code; what tool code may reach anyway is not asked about."""
    words = network.removeprefix("allow:").split(",") if network.startswith("allow:") else []
    return tuple(host for word in words for host in SHORTHANDS.get(word, (word,)))


def _carried(url: str) -> str:
    """A word on data that the address itself may carry out."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    length = len(parts.path) + len(parts.query) + len(parts.fragment)
    return f" (it says {length:,} characters behind the host)" if length > SHOWN_QUERY else ""
