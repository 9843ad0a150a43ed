"""Commands that delete, change rights, or end processes. Pure."""

from __future__ import annotations

import posixpath
import re

from harness_nb.policy.findings import OWN_PROCESS, PLAIN, words_in
from harness_nb.policy.shell.dangers import Danger, has_option, open_words, positional, value_of

CACHES = words_in(
    "__pycache__ .pytest_cache .mypy_cache .ruff_cache .ipynb_checkpoints .hypothesis .tox .nox "
    ".coverage htmlcov .DS_Store"
)
"""Folders that tools make again by themselves."""

_WHOLE = re.compile(
    r"^(/|~|/\*|~/|~/\*|/(home|root|etc|usr|var|bin|sbin|lib|lib64|boot|opt|Users|System)(/\*?)?|~\w*/?\*?)$"
)
_EVERYTHING = {"*", "./*", ".", "./", "..", "**", ".*", "*.*"}
_CACHE_NAMES = CACHES | {"*.pyc", "*.pyo", "*.pyd", "*.egg-info"}


def rm_dangers(words: list[str]) -> list[Danger]:
    """What there is against ``rm`` beyond where its paths lie."""
    targets = positional(words)
    recursive = has_option(words, "rR", "--recursive", "--no-preserve-root")
    if recursive and any(_WHOLE.match(_plain(target)) for target in targets):
        return [Danger("rm -r /", "deletes the system or everything of the person", "deny")]
    if recursive and not (targets and all(is_cache(target) for target in targets)):
        why = "deletes folders; delete files by name and empty folders with rmdir, or leave it and say what can go"
        return [Danger("delete folders with rm -r", why)]
    if any(target in _EVERYTHING for target in targets):
        return [Danger("rm *", "deletes all files here; name the files that are to go")]
    if open_words(words):
        return [Danger("delete what is not known:", "deletes what is only known when it runs; write the names out")]
    return []


def is_cache(path: str) -> bool:
    """Whether a path is a folder or a file that a tool makes again by itself."""
    name = posixpath.basename(path.rstrip("/"))
    return name in _CACHE_NAMES and not path.startswith(("/", "~")) and ".." not in path.split("/")


def _plain(path: str) -> str:
    return posixpath.normpath(path) if path.startswith("/") and set(path) - {"/"} else path.rstrip("/") or path[:1]


def find_dangers(words: list[str]) -> list[Danger]:
    """``find`` that deletes or writes; the commands that it runs are examined apart."""
    if "-delete" in words:
        names = [words[place + 1] for place, word in enumerate(words[:-1]) if word in ("-name", "-iname")]
        negated = any(word in ("-o", "-or", "!", "-not", ",") for word in words)
        if not (names and all(name in _CACHE_NAMES for name in names)) or negated:
            why = "deletes whatever it finds; list the files first, then delete them by name"
            return [Danger("find -delete", why)]
    if any(word in ("-fprint", "-fprintf", "-fls", "-fprint0") for word in words):
        return [Danger("find -fprint", "writes to a file; use a redirection instead")]
    return []


def found_commands(words: list[str]) -> list[list[str]]:
    """The commands that ``find`` runs, with a plain name for what it found."""
    commands, place = list[list[str]](), 0
    while place < len(words):
        if words[place] in ("-exec", "-execdir", "-ok", "-okdir"):
            end = place + 1
            while end < len(words) and not (words[end] == ";" or (words[end] == "+" and words[end - 1] == "{}")):
                end += 1
            commands.append([word.replace("{}", PLAIN) for word in words[place + 1 : end]])
            place = end
        place += 1
    return commands


def deletes_caches_only(words: list[str]) -> bool:
    """Whether a ``find`` looks for nothing but caches."""
    names = [words[place + 1] for place, word in enumerate(words[:-1]) if word in ("-name", "-iname")]
    return bool(names) and all(name in _CACHE_NAMES for name in names) and not {"!", "-not"} & set(words)


def rights_dangers(words: list[str]) -> list[Danger]:
    """``chmod``, ``chown`` and their like."""
    name = words[0]
    if name != "chmod":
        return [Danger(name, "changes whose files they are, or who may use them")]
    if has_option(words, "R", "--recursive"):
        return [Danger("chmod -R", "changes the rights of whole folders; name the files")]
    mode = next(iter(positional(words)), "") or next((word for word in words[1:] if re.match(r"-[rwxst]", word)), "")
    if re.search(r"[ugoa]*[+=][rwxXt]*s|^0*[2-7]\d{3}$", mode):
        return [Danger("chmod +s", "lets a file run with another user's rights")]
    return []


def kill_dangers(words: list[str]) -> list[Danger]:
    """``kill`` of processes that this script did not start."""
    if has_option(words, "lL", "--list") or value_of(words, "-s", "--signal") == "0" or "-0" in words:
        return []
    rest, first = words[1:], True
    targets = list[str]()
    while rest:
        word, *rest = rest
        if word in ("-s", "-n", "--signal"):
            rest = rest[1:]
        elif first and re.fullmatch(r"-([A-Za-z]+\d*|\d+)", word) and rest:
            pass
        elif word != "--":
            targets.append(word)
        first = False
    if any(re.fullmatch(r"-1|0", target) for target in targets):
        return [Danger("kill -1", "ends all processes of this user", "deny")]
    if all(target.startswith("%") or target == OWN_PROCESS for target in targets):
        return []
    why = "ends a process that this command did not start; use %1 or $! in the call that started it"
    return [Danger("kill", why)]


def pattern_kill_dangers(words: list[str]) -> list[Danger]:
    """``pkill``, ``killall`` and their like, which take processes by name."""
    return [Danger(words[0], "ends processes by name, those of others too")]
