"""What credentials of well-known kinds look like, whoever they belong to. Pure; ``masking`` uses it.

Each kind has literal hints, so that text without any costs next to nothing. The forms are those that the providers
publish for secret scanning; a pattern stays within a line, but for that of key files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness_nb.outputs.secret_forms import is_trivial

_BEFORE = r"(?<![A-Za-z0-9_\-])"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of credential: what it looks like in words, texts of which one must be there, and the pattern.

    The group ``secret`` is what is masked, where there is one. ``weak``: what it finds is no secret if it is a common
    word or a placeholder.
    """

    words: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    weak: bool = False


def _kind(words: str, hints: str, pattern: str, weak: bool = False) -> Kind:
    return Kind(words, tuple(hints.split()), re.compile(pattern), weak)


BEGIN_KEY = "-----BEGIN "
LONGEST_KEY = 16_384
"""Characters that the text of a key file may have."""

KINDS = (
    _kind(
        "a private key",
        "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z-]{1,30}: [^\n\\]{0,200}|\s|\\+[nr])*"
        r"[A-Za-z0-9+/=]{16,}(?:[A-Za-z0-9+/=]|\s|\\+[nr])*(?:-----END [A-Z0-9 ]{0,60}-----)?",
    ),
    _kind(
        "an API key",
        "sk- sk_ rk_",
        _BEFORE + r"(?:sk-(?=[\w-]*\d)(?=[\w-]*[A-Za-z0-9]{16})[A-Za-z0-9_\-]{20,}"
        r"|[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,})",
    ),
    _kind(
        "a GitHub token",
        "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
        _BEFORE + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
    ),
    _kind("a GitLab token", "glpat-", _BEFORE + r"glpat-[A-Za-z0-9_\-.]{20,}"),
    _kind("an AWS access key", "AKIA ASIA", r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    _kind(
        "an AWS secret key",
        "ecret_access_key ECRET_ACCESS_KEY ecretAccessKey",
        r"(?i:secret_?access_?key)['\"]?[ \t]*[=:][ \t]*['\"]?(?P<secret>[A-Za-z0-9/+=]{40})",
    ),
    _kind("a Slack token", "xox xapp-", _BEFORE + r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9\-]{10,}"),
    _kind("a Google key", "AIza ya29. GOCSPX-", _BEFORE + r"(?:AIza|ya29\.|GOCSPX-)[A-Za-z0-9_\-]{20,}"),
    _kind("a Hugging Face token", "hf_", _BEFORE + r"hf_[A-Za-z0-9]{30,}"),
    _kind("a package registry token", "npm_ pypi-", _BEFORE + r"(?:npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_\-]{50,})"),
    _kind(
        "a JSON web token",
        "eyJ",
        r"(?<![A-Za-z0-9_\-])eyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}",
    ),
    _kind(
        "a bearer token",
        "earer EARER uthorization",
        r"(?i:bearer|authorization['\"]?[ \t]{0,2}[:=][ \t]{0,2}['\"]?basic)[ \t]{1,4}"
        r"(?P<secret>(?=[^\s]*\d)[A-Za-z0-9._~+/=\-]{16,})",
    ),
    _kind(
        "a password",
        "://",
        r"[A-Za-z]://[^\s/@:'\"<>]{0,100}:(?P<secret>[^\s/@'\"<>{}$*]{4,200})@",
        weak=True,
    ),
    _kind(
        "a password",
        "= ",
        r"[?&](?i:password|passwd|pwd|token|api_?key|access_token|refresh_token|client_secret|secret|sig|signature)="
        r"(?P<secret>[^\s&'\"#<>{}$*\[]{8,})",
        weak=True,
    ),
    _kind(
        "a password or a key",
        "KEY TOKEN SECRET PASS",
        r"(?m:^)(?:export[ \t]+|[ \t\d:|]{0,12})?[A-Z][A-Z0-9_]{0,60}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS)"
        r"(?:_[A-Z0-9]+)?[ \t]?=[ \t]?['\"]?(?P<secret>(?=\S*\d)(?=\S*[A-Za-z])(?![/~.])[^\s'\"$<>{}()\[\],;*]{12,})",
        weak=True,
    ),
)

UNFINISHED = re.compile(
    r"(?:(?:sk-|[sr]k_|gh[pousr]_|github_pat_|glpat-|AKIA|ASIA|xox[abeoprs]-|AIza|ya29\.|GOCSPX-|hf_|npm_|pypi-|eyJ)"
    r"[A-Za-z0-9_\-.]{0,400}|(?i:bearer) [^\s]{0,60}|://[^\s/@'\"]{1,300}|-----BEGIN [^\n]{0,80})\Z"
)
"""The end of a text in which such a credential may be half written."""


def is_placeholder(text: str) -> bool:
    """Whether what a weak pattern found is a word, or stands for something that is filled in later."""
    return is_trivial(text) or text.lower().strip("x*.-_") == "" or text.lower().startswith(("your", "example", "my-"))
