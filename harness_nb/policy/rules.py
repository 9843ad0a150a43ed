"""Rules: functions from a call and its source to a decision, or ``None`` for "nothing to say". Pure.

The path rules are lexical; the functions in the tool kernel resolve symbolic links and refuse again. A rule reads as a
sentence. The strictest decision wins, and a rule that fails counts as a denial.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable

from pathspec import GitIgnoreSpec

from harness_nb.types import Decision, ToolCall

Rule = Callable[[ToolCall, str], Decision | None]

ALLOWED = Decision(verdict="allow", reason="no rule objects", policy="default")
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_WRITERS = ("write_file", "search_replace")

RECORD_GLOBS = ("harness_sessions/**",)
"""The record of the sessions; no tool writes there."""

_DANGEROUS = (
    (re.compile(r"\bsudo\b|\bsu\s+-"), "it asks for another user's rights"),
    (
        re.compile(r"\bgit\s+(push|reset\s+--hard|clean\s+-\w*f)"),
        "it changes or discards work in a way that cannot be undone",
    ),
    (re.compile(r"\brm\s+(-\w+\s+)*-\w*[rR]\w*"), "it deletes folders"),
    (re.compile(r"\b(curl|wget)\b[^|;&]*\|\s*(ba|z|da)?sh\b"), "it runs a script straight from the network"),
    (re.compile(r"\b(mkfs\S*|shutdown|reboot|dd\s+[^|;]*\bof=/dev/)"), "it can damage the machine"),
)


def decide(rules: Iterable[Rule], call: ToolCall, source: str) -> Decision:
    """The strictest decision of all rules; allow when none objects.

    A rule that allows a call by name lifts what others ask, never what they deny.
    """
    decisions = [ALLOWED]
    for rule in rules:
        try:
            decision = rule(call, source)
        except Exception as error:
            name = getattr(rule, "__name__", "rule")
            decision = Decision(verdict="deny", reason=f"the rule {name} failed: {error}", policy=name)
        if decision is not None:
            decisions.append(decision)
    strictest = max(decisions, key=lambda decision: _STRICTNESS[decision.verdict])
    allowing = [decision for decision in decisions[1:] if decision.verdict == "allow"]
    return allowing[0] if allowing and strictest.verdict != "deny" else strictest


def deny_outside_workspace(call: ToolCall, source: str) -> Decision | None:
    """Paths of the file tools stay in the workspace."""
    path = call.arguments.get("path")
    if not isinstance(path, str) or not leaves_workspace(path):
        return None
    return Decision(
        verdict="deny",
        reason=f"the path {path} is outside the workspace; only paths inside it can be used",
        policy="deny_outside_workspace",
    )


def deny_read_only(globs: Iterable[str]) -> Rule:
    """A rule that keeps the file tools from writing to what matches ``globs`` (gitignore patterns)."""
    spec = GitIgnoreSpec.from_lines([*globs, *RECORD_GLOBS])

    def deny_writing_read_only_files(call: ToolCall, source: str) -> Decision | None:
        path = call.arguments.get("path")
        if call.name not in _WRITERS or not isinstance(path, str):
            return None
        if not spec.match_file(posixpath.normpath(path)):
            return None
        return Decision(verdict="deny", reason=f"{path} is read-only in this session", policy="deny_read_only")

    return deny_writing_read_only_files


def ask_before_dangerous_commands(call: ToolCall, source: str) -> Decision | None:
    """Shell commands that are hard to undo, or that reach outside the workspace, are asked about first."""
    if call.name != "bash":
        return None
    command = str(call.arguments.get("command", ""))
    for pattern, reason in _DANGEROUS:
        if pattern.search(command):
            return Decision(
                verdict="ask", reason=f"{reason}: {command.strip()[:200]}", policy="ask_before_dangerous_commands"
            )
    outside = [word for word in _words(command) if word.startswith("~") or word == ".." or _climbs(word)]
    if outside:
        return Decision(
            verdict="ask",
            reason=f"the command reaches outside the workspace: {outside[0]}",
            policy="ask_before_dangerous_commands",
        )
    return None


def leaves_workspace(path: str) -> bool:
    """Whether a path, read as text, is absolute, begins in a home folder, or climbs above where it starts."""
    return path.startswith(("/", "~", "\\")) or posixpath.normpath(path).split("/")[0] == ".."


def _climbs(word: str) -> bool:
    candidate = word.split("=", 1)[-1].lstrip("<>")
    return ".." in candidate.split("/") and leaves_workspace(candidate) and not candidate.startswith("/")


def _words(command: str) -> list[str]:
    """The words of a command, operators apart; split at white space where the quotes do not close."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return command.split()
