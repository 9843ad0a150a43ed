"""The words of a shell command as bash will see them, as far as that is known before it runs. Pure.

Quotes and backslashes are taken off, variables that the script itself sets once to a constant are put in, braces are
expanded. What is left open stands as ``UNKNOWN``. Source: the manual of bash, section 3.5 (shell expansions).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from harness_nb.policy.findings import OWN_PROCESS, PLAIN, UNKNOWN

Variables = Mapping[str, str]
"""Variables whose value is known, by name; a value may hold ``PLAIN`` or ``OWN_PROCESS``."""

KNOWN_VARIABLES = {"HOME": "~", "PWD": ".", "TMPDIR": "/tmp", "UID": PLAIN, "RANDOM": PLAIN, "SECONDS": PLAIN}
"""Variables that mean the same in every script; ``#`` and its like are numbers."""

_OPEN, _COMMA, _CLOSE, _SPACE = "\x01", "\x02", "\x03", "\x04"
"""Braces, their commas and white space that are not quoted, while words are put together."""

_MAX_WORDS = 200
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_ANSI = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)", re.S)
_BRACES = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")
_CUTS_ENDS = ("%", "%%")


def words_of(nodes: Sequence[Node], variables: Variables) -> list[str]:
    """The words that one argument becomes: one, or several where braces or an unquoted variable are expanded.

    ``nodes`` stand next to one another without white space; the parser parts some words.
    """
    words: list[str] = []
    for text in _expand("".join(_text_of(node, variables) for node in nodes)):
        pieces = [piece for piece in text.split(_SPACE) if piece] if _SPACE in text else [text]
        words += [_plain(piece) for piece in pieces]
    return words


def word_of(node: Node, variables: Variables) -> str:
    """One argument as one text, with nothing split."""
    return _plain(_text_of(node, variables).replace(_SPACE, " "))


def unescape(text: str) -> str:
    """Text outside of quotes without its backslashes."""
    return re.sub(r"\\(.|\n)", lambda match: "" if match[1] == "\n" else match[1], text)


def source_of(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _text_of(node: Node, variables: Variables) -> str:
    kind = node.type
    if kind in ("command_name", "concatenation", "array"):
        return "".join(_text_of(child, variables) for child in node.children)
    if kind in ("word", "number", "{", "}"):
        return _mark(source_of(node))
    if kind == "string":
        return _quoted(node, variables)
    if kind in ("raw_string", "raw_heredoc"):
        return source_of(node).strip()[1:-1]
    if kind == "ansi_c_string":
        return _ANSI.sub(_ansi, source_of(node).strip()[2:-1])
    if kind in ("simple_expansion", "expansion"):
        return _variable(node, variables, quoted=False)
    if kind in ("brace_expression", "arithmetic_expansion"):
        return PLAIN
    if kind == "command_substitution":
        return OWN_PROCESS if source_of(node).strip() == "$(jobs -p)" else UNKNOWN
    if kind in ("variable_name", "test_operator", "=", "=="):
        return source_of(node)
    return "" if kind == "translated_string" and not node.children else UNKNOWN


def _mark(text: str) -> str:
    """An unquoted word: its braces marked, its backslashes taken off."""
    pieces = re.split(r"(\\.|\\\n)", text, flags=re.S)
    marks = str.maketrans({"{": _OPEN, ",": _COMMA, "}": _CLOSE})
    return "".join(unescape(piece) if piece.startswith("\\") else piece.translate(marks) for piece in pieces)


def _quoted(node: Node, variables: Variables) -> str:
    inner = [child for child in node.children if child.is_named]
    if all(child.type == "string_content" for child in inner):
        return _in_quotes(source_of(node).strip()[1:-1])
    parts = []
    for child in inner:
        if child.type == "string_content":
            parts.append(_in_quotes(source_of(child)))
        elif child.type in ("simple_expansion", "expansion"):
            parts.append(_variable(child, variables, quoted=True))
        else:
            parts.append(_text_of(child, variables))
    return "".join(parts)


def _in_quotes(text: str) -> str:
    return re.sub(r'\\([$`"\\\n])', lambda match: "" if match[1] == "\n" else match[1], text)


def _ansi(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else UNKNOWN
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    if code[0] == "c" and len(code) == 2:
        return chr(ord(code[1]) & 0x1F)
    return _ESCAPES.get(code, code)


def _variable(node: Node, variables: Variables, *, quoted: bool) -> str:
    """What ``$NAME`` or ``${NAME…}`` stands for."""
    names = [child for child in node.children if child.type in ("variable_name", "special_variable_name")]
    operators = [child.type.strip() for child in node.children if child.type.strip() not in ("$", "${", "}")]
    operators = [each for each in operators if each not in ("variable_name", "special_variable_name")]
    if len(names) != 1:
        return UNKNOWN
    name = source_of(names[0]).strip()
    if name == "!" and not operators:
        return OWN_PROCESS
    if name in ("$", "#", "?") or operators[:1] == ["#"]:
        return PLAIN
    value = variables.get(name, KNOWN_VARIABLES.get(name))
    if value is None or UNKNOWN in value:
        return UNKNOWN
    if operators:
        return PLAIN if operators[0] in _CUTS_ENDS and not value.startswith("-") else UNKNOWN
    if quoted:
        return value
    return re.sub(r"\s", _SPACE, value)


def _expand(text: str) -> Iterator[str]:
    """Expand braces, the innermost first; a group without a comma stays as it is."""
    waiting, made = [text], 0
    while waiting and made < _MAX_WORDS:
        current = waiting.pop(0)
        for match in _BRACES.finditer(current):
            if _COMMA in match[1]:
                before, after = current[: match.start()], current[match.end() :]
                waiting = [before + choice + after for choice in match[1].split(_COMMA)] + waiting
                break
        else:
            made += 1
            yield current
    if waiting:
        yield UNKNOWN


def _plain(text: str) -> str:
    for mark, character in ((_OPEN, "{"), (_COMMA, ","), (_CLOSE, "}"), (_SPACE, " ")):
        text = text.replace(mark, character)
    return text
