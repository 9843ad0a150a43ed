"""Commands that run another command: ``sudo``, ``env``, ``timeout``, ``xargs`` and their like, taken off one by one.

Pure. Source of the options: the manual pages of coreutils, findutils, util-linux and sudo.
"""

from __future__ import annotations

import re

from harness_nb.policy.findings import PLAIN

_WRAPPERS: dict[str, tuple[frozenset[str], int]] = {
    name: (frozenset(options.split()), words)
    for name, options, words in (
        ("nohup", "", 0),
        ("time", "-f -o --format --output", 0),
        ("nice", "-n --adjustment", 0),
        ("timeout", "-s -k --signal --kill-after", 1),
        ("env", "-u -C --unset --chdir -S --split-string", 0),
        ("command", "", 0),
        ("builtin", "", 0),
        ("exec", "-a", 0),
        ("coproc", "", 0),
        ("stdbuf", "-i -o -e --input --output --error", 0),
        ("setsid", "", 0),
        ("ionice", "-c -n -p --class --classdata", 0),
        ("chrt", "-T -P -D", 1),
        ("taskset", "", 1),
        ("xargs", "-I -n -P -L -d -E -s -a --replace --max-args --max-procs --delimiter --arg-file --max-lines", 0),
        ("parallel", "-j -a --jobs --arg-file", 0),
        ("sudo", "-u -g -h -p -C -D -R -T -U --user --group --chdir", 0),
        ("doas", "-u -C", 0),
        ("pkexec", "--user", 0),
        ("busybox", "", 0),
        ("toybox", "", 0),
        ("strace", "-o -e -p -s", 0),
        ("ltrace", "-o -e -p -s", 0),
        ("unbuffer", "", 0),
        ("flock", "-w -E --timeout --conflict-exit-code", 1),
        ("chroot", "--userspec --groups", 1),
        ("unshare", "-S -G -R -w", 0),
        ("nsenter", "-t -S -G", 0),
        ("setarch", "", 1),
        ("faketime", "-f", 1),
        ("xvfb-run", "-n -s -e", 0),
        ("catchsegv", "", 0),
        ("torchrun", "--nproc_per_node --nnodes --node_rank", 0),
        ("if", "", 0),
        ("then", "", 0),
        ("do", "", 0),
        ("else", "", 0),
        ("!", "", 0),
    )
}
_RUNNERS = {
    ("conda", "run"): frozenset({"-n", "--name", "-p", "--prefix", "--cwd"}),
    ("mamba", "run"): frozenset({"-n", "--name", "-p", "--prefix", "--cwd"}),
    ("micromamba", "run"): frozenset({"-n", "--name", "-p", "--prefix", "--cwd"}),
    ("uv", "run"): frozenset({"--with", "--python", "-p", "--extra", "--group", "--project", "--directory"}),
    ("poetry", "run"): frozenset[str](),
    ("pipenv", "run"): frozenset[str](),
    ("pdm", "run"): frozenset[str](),
    ("hatch", "run"): frozenset[str](),
    ("rye", "run"): frozenset[str](),
    ("pixi", "run"): frozenset({"-e", "--environment"}),
    ("coverage", "run"): frozenset[str](),
}
FEEDING = frozenset({"xargs", "parallel"})
"""Wrappers that add words from their input to the command."""

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def name_of(words: list[str]) -> str:
    """The name of a command, without its folder."""
    return words[0].rsplit("/", 1)[-1] if words else ""


def unwrapped(words: list[str]) -> list[list[str]]:
    """A command and, behind it, each command that it runs in turn; the last one runs no other."""
    layers = [words]
    while (inner := _inner(layers[-1])) and len(layers) < 12:
        layers.append(inner)
    return layers


def split_string(words: list[str]) -> str | None:
    """The text that ``env -S`` splits into a command."""
    if name_of(words) != "env":
        return None
    for place, word in enumerate(words):
        if word in ("-S", "--split-string"):
            return " ".join(words[place + 1 :])
        if word.startswith(("-S", "--split-string=")):
            return " ".join([word.removeprefix("--split-string=").removeprefix("-S"), *words[place + 1 :]])
    return None


def behind_options(words: list[str], taking: frozenset[str]) -> list[str]:
    """The words behind a command's name and its options; those in ``taking`` take the next word with them."""
    place = 1
    while place < len(words):
        word = words[place]
        if word == "--":
            return words[place + 1 :]
        if not word.startswith("-") or word == "-":
            break
        place += 2 if word in taking else 1
    return words[place:]


def _inner(words: list[str]) -> list[str]:
    name = name_of(words)
    if (pair := (name, words[1] if len(words) > 1 else "")) in _RUNNERS:
        return behind_options(words[1:], _RUNNERS[pair])
    if name not in _WRAPPERS:
        return []
    taking, extra = _WRAPPERS[name]
    if name == "command" and len(words) > 1 and words[1] in ("-v", "-V"):
        return []
    rest = behind_options(words, taking)
    if name == "nice" and rest and re.fullmatch(r"[+-]?\d+", rest[0]):
        rest = rest[1:]
    while rest and _ASSIGNMENT.match(rest[0]):
        rest = rest[1:]
    rest = rest[extra:]
    return [*rest, PLAIN] if rest and name in FEEDING else rest
