"""Examines a shell script: every command in it, and every command that those run. Pure.

``examine`` parses the script, takes wrappers such as ``sudo`` and ``env`` off, follows the scripts that shells,
``eval``, ``xargs``, ``find -exec`` and ``python -c`` are given, and asks the tables of families about each. What cannot
be read, and what is only known when it runs, is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness_nb.policy import paths
from harness_nb.policy.findings import MAX_DEPTH, PLAIN, UNKNOWN, Finding, Ground, Report, joined
from harness_nb.policy.shell import arguments, interpreters
from harness_nb.policy.shell.families import FAMILIES
from harness_nb.policy.shell.parsing import Script, Segment, Stdin, parse
from harness_nb.policy.shell.removing import deletes_caches_only, found_commands, is_cache
from harness_nb.policy.shell.wrappers import FEEDING, name_of, split_string, unwrapped

_BOMB = re.compile(r"([\w:.]+)\s*\(\)\s*\{[^}]*?(?<![\w:.])\1\s*\|\s*\1(?![\w:.])")
_LOADED = {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PYTHONSTARTUP"}
_RUN = re.compile(
    r"^(GIT_(SSH|SSH_COMMAND|EDITOR|PAGER|EXTERNAL_DIFF|ASKPASS)|EDITOR|VISUAL|PAGER|PROMPT_COMMAND|SHELL)$"
)


def examine(text: str, ground: Ground) -> Report:
    """What there is against a script."""
    if ground.depth > MAX_DEPTH:
        why = "stands in too many scripts within one another; write it out plainly"
        return Report((Finding("ask", "run:", why, text),))
    if UNKNOWN in text:
        why = "is a script with parts that are only known when it runs; write it out"
        return Report((Finding("ask", "run:", why, text),))
    try:
        script = parse(text.replace("\r\n", "\n"))
    except RecursionError:
        script = Script(problem=text)
    reports = [_segment(segment, script, ground) for segment in script.segments]
    reports += [examine(nested, ground.deeper()) for nested in script.nested]
    reports += [_settings(script.settings, text, ground)]
    if _BOMB.search(text):
        reports.append(Report((Finding("deny", "fork bomb", "starts itself again and again without end", text),)))
    if script.problem:
        why = "is no shell command that the rules can read; write it more plainly"
        reports.append(Report((Finding("ask", "run:", why, text),)))
    return joined(reports)


def examine_words(words: list[str], part: str, ground: Ground, stdin: str | None = None) -> Report:
    """What there is against one command whose words are known, run without a shell; ``stdin`` is what it reads."""
    return _segment(Segment(words, part, Stdin(text=stdin)), Script(), ground)


def _segment(segment: Segment, script: Script, ground: Ground) -> Report:
    report = Report(tuple(_redirections(segment, ground)), (), tuple(segment.writes + segment.reads))
    report += _settings(segment.settings, segment.text, ground)
    if not segment.words:
        return report
    layers = unwrapped(segment.words)
    words, outside = tuple(segment.words), list[Finding]()
    for word in arguments.path_words(layers[-1]):
        if finding := paths.reading(word, segment.text, ground):
            outside.append(finding)
    named = tuple(arguments.path_words(layers[-1]))
    report += Report(tuple(outside), (words,), named)
    for layer in layers:
        report += _layer(layer, segment, script, ground)
    if (text := split_string(layers[0])) is not None:
        report += examine(text, ground.deeper())
    if name_of(layers[0]) in FEEDING and name_of(layers[-1]) in ("rm", "unlink", "rmdir", "shred"):
        why = "deletes whatever is named on its input; delete files by name"
        report += Report((Finding("ask", "xargs rm", why, segment.text, tuple(layers[0])),))
    return report


def _redirections(segment: Segment, ground: Ground) -> Iterator[Finding]:
    part = segment.whole.split("\n")[0] or segment.text
    for path in segment.writes:
        if finding := paths.writing(path, part, ground):
            yield finding
    for path in segment.reads:
        if path.startswith(("/dev/tcp/", "/dev/udp/")):
            yield Finding("ask", "send data out", "connects to another machine", part)
        elif finding := paths.reading(path, part, ground):
            yield finding


def _settings(settings: list[tuple[str, str]], part: str, ground: Ground) -> Report:
    """Variables that say what other programs load or run."""
    report = Report()
    for name, value in settings:
        if name in _LOADED and name != "LD_LIBRARY_PATH":
            why = f"sets {name}, by which other programs load code; leave it out"
            report += Report((Finding("ask", f"set {name}", why, part),))
        elif _RUN.match(name):
            report += examine(value, ground.deeper())
        elif name == "HOME" or (name == "PATH" and not re.match(r"[\w./~-]*[:\0]", value)):
            why = f"sets {name}, by which programs are found"
            report += Report((Finding("ask", f"set {name}", why, part),))
    return report


def _layer(words: list[str], segment: Segment, script: Script, ground: Ground) -> Report:
    """What there is against one command, and against what it runs."""
    name, part, given = name_of(words), segment.text, tuple(words)
    if not name or UNKNOWN in words[0] or PLAIN in words[0]:
        if not words[0] and len(words) == 1:
            return Report()
        why = "runs a command whose name is only known when it runs; write the name out"
        return Report((Finding("ask", "run:", why, part, given),), (given,))
    plain = [name, *words[1:]]
    check = FAMILIES.get(name)
    dangers = check(plain) if check else []
    findings = [Finding(each.verdict, each.kind, each.why, part, given) for each in dangers]
    caches = name in ("rm", "rmdir", "unlink")
    for path in arguments.written(plain):
        if caches and is_cache(path):
            continue
        if finding := paths.writing(path, part, ground):
            findings.append(finding)
    findings += _cd(plain, part, ground)
    report = Report(tuple(findings), (given,) if given != tuple(segment.words) else ())
    if name == "find":
        for command in found_commands(words):
            report += _found(command, words, segment, ground)
    return report + interpreters.followed(plain, segment, script, ground, examine)


def _cd(words: list[str], part: str, ground: Ground) -> list[Finding]:
    """``cd`` to a folder outside: all that comes behind it is outside then."""
    if words[0] not in ("cd", "pushd") or len(words) < 2:
        return []
    path = paths.localised(words[-1], ground)
    if not path.startswith("/") or path.rstrip("/") in ("/tmp", "/var/tmp") or path.startswith("/tmp/"):
        return []
    why = f"leaves the workspace for {path}; give paths inside the workspace instead"
    return [Finding("ask", f"reach outside the workspace: {path}", why, part, path=path)]


def _found(command: list[str], words: list[str], segment: Segment, ground: Ground) -> Report:
    """A command that ``find`` runs for each file."""
    name = name_of(command)
    if name in ("rm", "rmdir", "unlink") and deletes_caches_only(words):
        return Report((), (tuple(command),))
    if name in ("rm", "unlink", "shred"):
        why = "deletes whatever it finds; list the files first, then delete them by name"
        return Report((Finding("ask", "find -exec rm", why, segment.text, tuple(words)),), (tuple(command),))
    inner = Segment(command, segment.text, segment.stdin)
    return _segment(inner, Script(), ground) if command else Report()
