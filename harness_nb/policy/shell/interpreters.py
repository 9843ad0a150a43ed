"""Commands that are given a script: shells, Python, ``eval``, ``trap``, ``ssh``. The script is examined too. Pure."""

from __future__ import annotations

import re
import shlex

from harness_nb.policy.findings import PLAIN, UNKNOWN, Examiner, Finding, Ground, Report, joined, words_in
from harness_nb.policy.shell.dangers import positional
from harness_nb.policy.shell.parsing import Script, Segment
from harness_nb.policy.shell.reaching import NETWORK
from harness_nb.policy.shell.wrappers import behind_options, name_of, unwrapped

SHELLS = words_in("sh bash zsh dash ksh mksh ash fish rbash csh tcsh")
_PYTHON = re.compile(r"^(python|pypy|ipython)([\d.]*|[\d.]*w)$")
_OTHERS = words_in("perl ruby node nodejs php lua R Rscript julia deno bun osascript tclsh")
_STDIN = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def followed(words: list[str], segment: Segment, script: Script, ground: Ground, shell: Examiner) -> Report:
    """What there is against the script that a command is given; nothing where it is given none."""
    name, rest = words[0], words[1:]
    if name in SHELLS:
        return _shell(words, segment, ground, shell)
    if _PYTHON.match(name):
        return _python(words, segment, ground, shell)
    if name in _OTHERS and (not positional(words) or rest[-1:] == ["-"]) and not _has_code(rest):
        return _from_input(segment, ground, None, f"a {name} program")
    if name == "eval":
        return _script(" ".join(rest), segment, ground, shell) if rest else Report()
    if name in ("source", "."):
        return _sourced(rest, segment, ground, shell)
    if name == "trap" and rest and rest[0] not in ("-", "-l", "-p", ""):
        return _script(behind_options(words, frozenset())[0], segment, ground, shell) if positional(words) else Report()
    if name == "alias":
        return joined(_script(word.split("=", 1)[1], segment, ground, shell) for word in rest if "=" in word)
    if name in ("su", "runuser", "flock", "script", "watch", "parallel", "fish", "hyperfine", "entr", "sg"):
        return _command_strings(words, segment, ground, shell)
    if name == "ssh":
        inner = behind_options(words, words_in("-p -i -l -o -F -J -L -R -D -b -c -e -m -S -W -w"))[1:]
        return _script(" ".join(inner), segment, ground, shell) if inner else Report()
    if name == "git":
        return _git(words, segment, ground, shell)
    return Report()


def _script(text: str, segment: Segment, ground: Ground, examiner: Examiner) -> Report:
    """A script that a command is given: examined, unless a part of it is only known when it runs."""
    if UNKNOWN not in text:
        return examiner(text, ground.deeper())
    why = "runs a script with parts that are only known when it runs; write it out"
    return Report((Finding("ask", "run:", why, segment.text, tuple(segment.words)),))


def _has_code(words: list[str]) -> bool:
    return any(re.match(r"^-\w*[eErp]|^--(eval|print|version)", word) for word in words)


def _shell(words: list[str], segment: Segment, ground: Ground, shell: Examiner) -> Report:
    place = 1
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] not in _STDIN:
        word = words[place]
        if not word.startswith("--") and "c" in word:
            code = next((each for each in words[place + 1 :] if not each.startswith(("-", "+"))), "")
            return _script(code, segment, ground, shell)
        if re.match(r"^-\w*s", word):
            return _from_input(segment, ground, shell, "a script")
        place += 2 if word in ("-o", "-O", "+O", "+o", "--rcfile", "--init-file") else 1
        if word in ("--version", "--help"):
            return Report()
    if place < len(words) and words[place] not in _STDIN:
        return _script_file(words[place], segment) + Report((), (tuple(words[place:]),))
    return _from_input(segment, ground, shell, "a script")


def _script_file(path: str, segment: Segment) -> Report:
    if path.startswith(UNKNOWN) or path == PLAIN:
        why = "runs a script that is only known when it runs; write the script's name out"
        return Report((Finding("ask", "run:", why, segment.text, tuple(segment.words)),))
    return Report()


def _sourced(rest: list[str], segment: Segment, ground: Ground, shell: Examiner) -> Report:
    if rest[:1] and rest[0] in _STDIN:
        return _from_input(segment, ground, shell, "a script")
    return _script_file(rest[0], segment) if rest else Report()


def _python(words: list[str], segment: Segment, ground: Ground, shell: Examiner) -> Report:
    place = 1
    while place < len(words) and words[place].startswith("-") and words[place] not in _STDIN:
        word = words[place]
        if re.match(r"^-[A-Za-z]*c", word) and not word.startswith("--"):
            code = word.split("c", 1)[1] or (words[place + 1] if place + 1 < len(words) else "")
            return _script(code, segment, ground, ground.python)
        if re.match(r"^-[A-Za-z]*m", word) and not word.startswith("--"):
            module = [*([attached] if (attached := word.split("m", 1)[1]) else []), *words[place + 1 :]]
            return _module(module, segment, ground, shell)
        if word in ("-V", "--version", "-h", "--help", "-VV"):
            return Report()
        place += 2 if word in ("-W", "-X", "--check-hash-based-pycs") else 1
    if place < len(words) and words[place] not in _STDIN:
        return _script_file(words[place], segment)
    return _from_input(segment, ground, ground.python, "a Python program")


def _module(module: list[str], segment: Segment, ground: Ground, shell: Examiner) -> Report:
    """``python -m NAME`` is the command NAME."""
    if not module:
        return Report()
    if module[0] in ("http.server", "SimpleHTTPServer", "smtpd", "pyftpdlib"):
        why = "serves files to the network"
        return Report((Finding("ask", f"python -m {module[0]}", why, segment.text, tuple(segment.words)),))
    if module[0] in ("IPython", "code", "asyncio", "pdb") and len(module) == 1:
        return _from_input(segment, ground, ground.python, "a Python program")
    return _script(shlex.join(module), segment, ground, shell)


def _command_strings(words: list[str], segment: Segment, ground: Ground, shell: Examiner) -> Report:
    """Commands that take a command line as one word, mostly behind ``-c``."""
    total = Report()
    for place, word in enumerate(words[1:], 1):
        if word in ("-c", "--command") and place + 1 < len(words):
            total += _script(words[place + 1], segment, ground, shell)
        elif re.search(r"\s", word) and not word.startswith("-"):
            total += _script(word, segment, ground, shell)
    if words[0] in ("watch", "entr", "parallel"):
        total += _script(" ".join(behind_options(words, frozenset({"-n", "--interval", "-j"}))), segment, ground, shell)
    return total


def _git(words: list[str], segment: Segment, ground: Ground, shell: Examiner) -> Report:
    """git commands that run others for each commit or submodule."""
    rest = [word for word in words[1:] if word]
    for marker, behind in (("foreach", "submodule"), ("run", "bisect")):
        if behind in rest[:3] and marker in rest:
            return _script(" ".join(rest[rest.index(marker) + 1 :]), segment, ground, shell)
    return joined(
        _script(value, segment, ground, shell)
        for place, word in enumerate(rest)
        if word in ("--exec", "-x") and "rebase" in rest
        for value in rest[place + 1 : place + 2]
    )


def _from_input(segment: Segment, ground: Ground, examiner: Examiner | None, what: str) -> Report:
    """A program that is read from standard input: examined where its text is known, else asked about."""
    given = tuple(segment.words)
    text = segment.stdin.text
    if text is None and segment.stdin.before:
        text = printed(segment.stdin.before[-1])
    if text is not None and UNKNOWN not in text and examiner is not None:
        return examiner(text, ground.deeper())
    if segment.stdin.file is not None and text is None and not segment.stdin.before:
        return _script_file(segment.stdin.file, segment)
    if text is None and not segment.stdin.before:
        return Report()
    names = {name_of(layer) for before in segment.stdin.before for layer in unwrapped(before.words)}
    if names & NETWORK:
        why = f"runs {what} straight from the network; save it to a file and look at it first"
        return Report((Finding("ask", "run a script from the network:", why, segment.text, given),))
    why = f"runs {what} that only shows when it runs; put it into a file first"
    return Report((Finding("ask", "run what another command prints:", why, segment.text, given),))


def printed(segment: Segment) -> str | None:
    """What a command prints, where its words or its input tell; ``None`` where they do not."""
    words = segment.words
    name = name_of(words)
    if name == "echo" and not segment.writes:
        rest = words[1:]
        escapes = False
        while rest and re.fullmatch(r"-[neE]+", rest[0]):
            escapes |= "e" in rest[0]
            rest = rest[1:]
        text = " ".join(rest)
        return UNKNOWN if escapes and "\\" in text else text
    if name == "printf" and len(words) >= 2 and not segment.writes:
        pattern = words[1].replace("\\n", "\n")
        if pattern.rstrip("\n") in ("%s", "%b") and len(words) == 3 and "\\" not in words[2]:
            return words[2]
        return pattern if len(words) == 2 and "%" not in pattern and "\\" not in pattern else UNKNOWN
    if name in ("cat", "tee") and not positional(words):
        return segment.stdin.text
    return None
