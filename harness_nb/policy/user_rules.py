"""Rules of the user: the lists ``allow``, ``ask`` and ``deny`` of the table ``[tool.harness-nb.policy]``. Pure.

``read_rules`` reads and checks them; ``judge_by`` makes one rule of them and of what the shell's, Python's and the
files' rules find. Each command of a compound one is matched by itself. The strictest wins; a rule that allows lifts
what the built-in rules ask about that one command or path, never what they deny.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from pathspec import GitIgnoreSpec
from pydantic import ConfigDict, ValidationError, field_validator, model_validator

from harness_nb.errors import UsageError
from harness_nb.policy.dangers import ground_for, report_of
from harness_nb.policy.findings import Finding, Ground, Report, shown, words_in
from harness_nb.policy.rules import Rule
from harness_nb.types import Decision, Frozen, ToolCall

KEYS = ("allow", "ask", "deny")
"""The lists of the table; ``thresholds`` and ``default`` stand beside them."""

TOOLS = words_in(
    "python bash read_file write_file search_replace list_files search_files view_image wait rebuild "
    "finish update_plan web_search web_fetch delegate"
)

POLICY = "user_rules"
"""``Decision.policy`` where a rule of the user counts."""

BUILT_IN = "ask_before_dangerous_commands"
"""``Decision.policy`` where the built-in rules ask or deny."""

_OTHERS = ("default", "thresholds")
_MOST = 3
"""How many things a reason names."""


class Pattern(Frozen):
    """What a rule of the user is about; all that is given must fit.

    ``tool`` is a tool's name, ``path`` a gitignore pattern, ``command`` the words of a command with ``*`` for
    any, ``regex`` a regular expression for its words, ``reason`` what model and person are told.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str = ""
    path: str = ""
    command: str = ""
    regex: str = ""
    reason: str = ""

    @field_validator("tool")
    @classmethod
    def _known_tool(cls, tool: str) -> str:
        if tool and tool not in TOOLS:
            raise ValueError(f"there is no tool named {tool!r}; the tools are {', '.join(TOOLS)}")
        return tool

    @field_validator("regex")
    @classmethod
    def _readable_regex(cls, regex: str) -> str:
        try:
            re.compile(regex)
        except re.error as error:
            raise ValueError(f"{regex!r} is no regular expression: {error}") from error
        return regex

    @field_validator("command")
    @classmethod
    def _readable_command(cls, command: str) -> str:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"{command!r} cannot be split into words: {error}") from error
        if command and (not words or any(word in ("&&", "||", ";", "|", "&") for word in words)):
            raise ValueError(f"{command!r} is not one command; write a pattern for each command")
        return command

    @model_validator(mode="after")
    def _about_something(self) -> Pattern:
        if not (self.tool or self.path or self.command or self.regex):
            raise ValueError("it is about nothing; give tool, path, command or regex")
        if (self.command or self.regex) and self.tool not in ("", "bash", "python"):
            raise ValueError(f"{self.tool} runs no commands; use path, or leave tool out")
        return self

    @property
    def about(self) -> str:
        """The pattern as it was written, for people."""
        given = [self.command, self.regex, self.path, self.tool]
        return next(text for text in given if text)

    @cached_property
    def _words(self) -> list[str]:
        return shlex.split(self.command)

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(self.regex)

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines([self.path])

    def fits_tool(self, call: ToolCall) -> bool:
        """Whether the rule is about this tool."""
        return self.tool in ("", call.name)

    def fits_command(self, words: Sequence[str]) -> bool:
        """Whether the rule is about a command with these words; a last ``*`` stands for any words, or none."""
        if not (self.command or self.regex) or not words:
            return False
        given = [words[0].rsplit("/", 1)[-1], *map(shown, words[1:])]
        if self.regex and not self._expression.search(" ".join(given)):
            return False
        return not self.command or _fit(self._words, given)

    def fits_path(self, path: str) -> bool:
        """Whether the rule is about this path."""
        cleaned = path.strip("\0").removeprefix("./")
        if not self.path or not cleaned:
            return False
        if self.path.startswith(("~", "/")) or cleaned.startswith(("~", "..")):
            return fnmatchcase(cleaned, self.path) or cleaned.startswith(self.path.removesuffix("**"))
        return bool(self._spec.match_file(cleaned))


def _fit(pattern: Sequence[str], words: Sequence[str]) -> bool:
    if pattern[-1] == "*":
        pattern = pattern[:-1]
        if len(words) < len(pattern):
            return False
        words = words[: len(pattern)]
    return len(words) == len(pattern) and all(map(fnmatchcase, words, pattern))


class UserRules(Frozen):
    """The rules of a user, in three lists."""

    allow: tuple[Pattern, ...] = ()
    ask: tuple[Pattern, ...] = ()
    deny: tuple[Pattern, ...] = ()


def read_rules(table: Mapping[str, Any]) -> UserRules:
    """The rules in the table ``[tool.harness-nb.policy]``.

    Raises:
        UsageError: if there is a mistake in them; the text names key, value and what would do.
    """
    where = "[tool.harness-nb.policy]"
    for key in table:
        if key not in (*KEYS, *_OTHERS):
            known = ", ".join((*KEYS, *_OTHERS))
            raise UsageError(f"{where} has no key {key!r}. Its keys are {known}.")
    lists: dict[str, list[Pattern]] = {}
    for key in KEYS:
        entries = table.get(key, [])
        if not isinstance(entries, list | tuple):
            raise UsageError(
                f"{key} in {where} is {entries!r} and not a list. Write it as "
                f'{key} = ["git push *", {{ path = "data/**" }}].'
            )
        lists[key] = [_read_pattern(key, entry, where) for entry in entries]
    return UserRules(**{key: tuple(patterns) for key, patterns in lists.items()})


def _read_pattern(key: str, entry: object, where: str) -> Pattern:
    fields = {"command": entry} if isinstance(entry, str) else entry
    try:
        if not isinstance(fields, Mapping):
            raise ValueError("it is neither a text nor a table")
        return Pattern.model_validate(dict(fields))
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, item['loc']))} {item['msg']}".strip() for item in error.errors())
        problem = details.replace("Value error, ", "").replace("Extra inputs are not permitted", "is no part of a rule")
    except ValueError as error:
        problem = str(error)
    raise UsageError(
        f"The rule {entry!r} under {key} in {where} is wrong: {problem}. A rule is the beginning of a command, such as "
        '"git push *", or a table of tool, path, command, regex and reason, such as '
        '{ path = "data/**", tool = "write_file" }.'
    )


def judge_by(rules: UserRules, ground: Ground) -> Rule:
    """One rule of the user's rules and the built-in ones."""

    def ask_before_dangerous_commands(call: ToolCall, source: str) -> Decision | None:
        report = report_of(call, ground)
        denied = [_said(rule, call) for rule in rules.deny if _is_about(rule, call, report)]
        if denied:
            return Decision(verdict="deny", reason=_together(denied), policy=POLICY)
        if forbidden := [finding.reason for finding in report.findings if finding.verdict == "deny"]:
            return Decision(verdict="deny", reason=_together(forbidden), policy=BUILT_IN)
        allowing = [rule for rule in rules.allow if rule.fits_tool(call)]
        asked = [_said(rule, call) for rule in rules.ask if _is_about(rule, call, report)]
        found = [each.reason for each in report.findings if not any(_lifts(rule, each) for rule in allowing)]
        if asked or found:
            return Decision(verdict="ask", reason=_together(asked + found), policy=BUILT_IN if found else POLICY)
        return _allowed(allowing, call, report)

    return ask_before_dangerous_commands


def _is_about(rule: Pattern, call: ToolCall, report: Report) -> bool:
    """Whether a rule that asks or denies is about a call: about any command or any path of it."""
    if not rule.fits_tool(call):
        return False
    if (rule.command or rule.regex) and not any(rule.fits_command(words) for words in report.commands):
        return False
    return not rule.path or any(rule.fits_path(path) for path in report.paths)


def _lifts(rule: Pattern, finding: Finding) -> bool:
    """Whether a rule that allows is about what was found."""
    if finding.path:
        return rule.fits_path(finding.path) and not (rule.command or rule.regex)
    if rule.command or rule.regex:
        return not rule.path and rule.fits_command(finding.words)
    return bool(rule.tool) and not rule.path


def _allowed(allowing: Sequence[Pattern], call: ToolCall, report: Report) -> Decision | None:
    """A call that the user's rules allow by name, whole."""
    if not allowing:
        return None
    whole = [rule for rule in allowing if rule.tool and not (rule.path or rule.command or rule.regex)]
    if not whole:
        if call.name == "bash":
            parts = [[rule for rule in allowing if rule.fits_command(words)] for words in report.commands]
        elif call.name == "python":
            parts = []
        else:
            parts = [[rule for rule in allowing if rule.fits_path(path)] for path in report.paths]
        if not parts or not all(parts):
            return None
        whole = [part[0] for part in parts]
    names = ", ".join(dict.fromkeys(rule.about for rule in whole))
    return Decision(verdict="allow", reason=f"your rules allow it: {names}", policy=POLICY)


def _said(rule: Pattern, call: ToolCall) -> str:
    return rule.reason or f"a rule of the person is about {rule.about}, and this call of {call.name} is of that kind"


def _together(reasons: Sequence[str]) -> str:
    """Several reasons as one sentence."""
    told = list(dict.fromkeys(reason.rstrip(". ") for reason in reasons))
    more = f"; and {len(told) - _MOST} more" if len(told) > _MOST else ""
    return "; ".join(told[:_MOST]) + more


ask_before_dangerous_commands = judge_by(UserRules(), ground_for())
"""The built-in rules alone, for a workspace whose folder is not known."""
