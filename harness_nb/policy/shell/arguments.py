"""Which words of a command are paths, and to which of them it writes. Pure."""

from __future__ import annotations

import re

from harness_nb.policy.findings import UNKNOWN, words_in
from harness_nb.policy.shell.dangers import has_option, positional, value_of
from harness_nb.policy.shell.wrappers import name_of

_SPEAKERS = frozenset({"echo", "printf", ":", "true", "false", "export", "logger"})
"""Commands whose words are no paths."""

_PATTERNS = words_in("grep egrep fgrep rg ag ack sed awk gawk perl jq expr tr cut find_string")
"""Commands whose first word is a pattern or a program."""

_TEXTS = {
    "git": ("-m", "--message", "--author", "--grep", "-S", "-G", "--format", "--pretty"),
    "gh": ("--title", "--body", "-t", "-b"),
    "pytest": ("-k", "-m"),
    "grep": ("-e", "--regexp", "--include", "--exclude", "--exclude-dir"),
    "rg": ("-e", "--regexp", "-g", "--glob"),
    "find": ("-name", "-iname", "-path", "-not", "-regex"),
    "curl": ("-H", "--header", "-A", "--user-agent", "-w"),
    "tar": ("--exclude",),
}
"""Options whose value is no path."""

_ALL = words_in("rm unlink rmdir touch mkdir truncate tee shred chmod chown chgrp mkfifo mknod setfacl chattr")
"""Commands that change every path that they name."""

_LAST = frozenset({"cp", "mv", "ln", "install", "rsync", "scp", "link"})
"""Commands that write to the last path that they name."""


def path_words(words: list[str]) -> list[str]:
    """The words of a command that may be paths, without ``NAME=`` or the option before them."""
    name = name_of(words)
    if name in _SPEAKERS or not words:
        return []
    rest = _without_texts(name, words[1:])
    if name in _PATTERNS:
        first = next((place for place, word in enumerate(rest) if not word.startswith("-")), None)
        if first is not None and not has_option(words, "e", "--regexp", "--expression", "--file"):
            rest = rest[:first] + rest[first + 1 :]
    found = [words[0]] if words[0].startswith(("~", "..")) else []
    for word in rest:
        candidate = re.sub(r"^-{1,2}[\w-]*=|^-[A-Za-z](?=[~./])|^@|^[A-Za-z_]\w*=@?|^\w+=", "", word).lstrip("<>@")
        if candidate and not candidate.startswith("-") and "\n" not in candidate and "://" not in candidate:
            found.append(candidate)
    return [each for each in found if not _is_text(each)]


def _is_text(word: str) -> bool:
    """Whether a word with white space reads as a text and not as a path."""
    return bool(re.search(r"\s", word)) and not word.startswith(("/", "~/", "../", "./"))


def _without_texts(name: str, words: list[str]) -> list[str]:
    options, kept, skip = _TEXTS.get(name, ()), list[str](), False
    for word in words:
        if not skip and not any(option.startswith("--") and word.startswith(f"{option}=") for option in options):
            kept.append(word)
        skip = not skip and word in options
    return [word for word in kept if word not in options]


def written(words: list[str]) -> list[str]:
    """The paths that a command writes to, deletes, or changes the rights of."""
    name, plain = words[0], positional(words)
    if name in _ALL:
        return plain[1:] if name in ("chmod", "chown", "chgrp", "setfacl", "chattr") else plain
    if name in _LAST:
        target = value_of(words, "-t", "--target-directory")
        targets = [target] if target is not None else plain[-1:] if len(plain) > 1 else []
        moved = plain[:-1] if name == "mv" else []
        linked = [path for path in plain[:-1] if path.startswith("/")] if name == "ln" else []
        return [*targets, *moved, *linked]
    if name == "dd":
        return [word[3:] for word in words if word.startswith("of=")]
    if name in ("sed", "gsed", "perl") and has_option(words, "i", "--in-place"):
        return [word for word in plain if not word.startswith(UNKNOWN)][0 if has_option(words, "e") else 1 :]
    if name in ("curl", "wget"):
        options = ("-o", "--output") if name == "curl" else ("-O", "--output-document")
        value = value_of(words, *options)
        return [value] if value and value != "-" else []
    if name == "git":
        return []
    if name in ("tar", "unzip", "bsdtar"):
        value = value_of(words, "-C", "--directory") if name != "unzip" else value_of(words, "-d")
        return [value] if value else []
    if name in ("sort", "gcc", "cc", "g++", "clang"):
        value = value_of(words, "-o", "--output")
        return [value] if value else []
    return []
