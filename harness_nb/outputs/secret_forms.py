"""The forms in which a known secret may turn up in text: itself, escaped, in base64, in hexadecimal. Pure.

``masking`` looks for them. A long value is also found by its parts: a data frame, a traceback or a wrapped line shows
the first or the last of it only.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

SHORTEST = 8
"""Characters of the shortest value that is looked for; a shorter one would be found in innocent text."""

BLOCK = 8
PART = 2 * BLOCK
"""A run of so many characters of a long value counts as a part of it: every such run holds a whole block."""

_WHOLE_ONLY = 24
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_\-+/=.~%]+")

TRIVIAL = frozenset({
    "password", "passw0rd", "changeme", "change-me", "secretkey", "username", "localhost", "anonymous", "disabled",
    "required", "optional", "undefined", "postgres", "postgresql", "testtest", "password1", "password123", "12345678",
    "123456789", "1234567890", "plaintext", "keychain", "development", "production", "placeholder", "your-api-key",
    "your_api_key", "not-needed", "not-used", "lm-studio", "dummy-key",
})  # fmt: skip
"""Values that are words: masking them would hide innocent text and protect nothing."""


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write the value of ``name``; ``least`` is how many characters in a row of it are a find."""

    name: str
    text: str
    least: int


def is_trivial(value: str) -> bool:
    """Whether a value is too short or too common to be looked for."""
    plain = value.strip()
    return len(plain) < SHORTEST or plain.lower() in TRIVIAL or len(set(plain)) < 4


def forms_of(known: Mapping[str, str]) -> list[Form]:
    """All forms of the ``known`` values by name; of two names with one value the first counts."""
    forms: dict[str, Form] = {}
    for name, value in known.items():
        for part in _lines(value):
            for text in _written(part):
                forms.setdefault(text, Form(name, text, _least(text)))
    return list(forms.values())


def _lines(value: str) -> Iterator[str]:
    """The value; of one with several lines, such as a key file, each long line."""
    plain = value.strip()
    lines = [line.strip() for line in plain.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= PART and not line.startswith("-----"))
    elif not is_trivial(plain):
        yield plain


def _least(text: str) -> int:
    long_and_random = len(text) >= _WHOLE_ONLY and _RANDOM.fullmatch(text)
    return PART if long_and_random else len(text)


def _written(value: str) -> Iterator[str]:
    """The value as it is, as programs escape it, and as they encode it."""
    data = value.encode("utf-8", "surrogateescape")
    yield value
    yield repr(value)[1:-1]
    yield ascii(value)[1:-1]
    yield json.dumps(value)[1:-1]
    yield json.dumps(json.dumps(value)[1:-1])[1:-1]
    yield html.escape(value)
    quoted = quote(data, safe="")
    yield quoted
    yield re.sub("%..", lambda match: match[0].lower(), quoted)
    yield quote_plus(data)
    yield data.hex()
    yield data.hex().upper()
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + data).decode()
        core = encoded[(shift * 8 + 5) // 6 : (shift + len(data)) * 8 // 6]
        yield core
        yield core.translate(str.maketrans("+/", "-_"))
