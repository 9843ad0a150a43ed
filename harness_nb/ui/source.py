"""The source of a cell as highlighted HTML, and a call's title. Pure; ``ui.html`` and ``ui.terminal`` use it.

The colours have a contrast above 4.2 to white and to the black of dark themes.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from pygments import lex, lexers, util  # type: ignore[import-untyped]
from pygments.token import Token  # type: ignore[import-untyped]

from harness_nb.approval import visible

_COLOURS: dict[Any, str] = {
    Token.Keyword.Constant: "#228970",
    Token.Keyword: "#2f8c2f",
    Token.Operator.Word: "#a159d5",
    Token.Operator: "#a159d5",
    Token.Literal.String: "#ce533a",
    Token.Literal.Number: "#228970",
    Token.Comment: "#5b8088",
    Token.Name.Builtin: "#228970",
    Token.Name.Function: "#3b75e9",
    Token.Name.Class: "#3b75e9",
    Token.Name.Tag: "#2f8c2f",
    Token.Name.Attribute: "#3b75e9",
    Token.Name.Decorator: "#c145c1",
}

_PREPARATION = ("import ", "from ", "set -", "cd ", "%", "!/", '"""')

TITLE_LENGTH = 100
"""Characters of a call's title."""


def coloured(source: str) -> list[tuple[str, str]]:
    """The source in pieces of text, each with its colour, empty for none; control characters written out."""
    head, lexer, body = _parts(visible(source))
    pieces = [(head, _COLOURS[Token.Name.Decorator])] if head else []
    return [*pieces, *((text, _colour(kind) or "") for kind, text in (lex(body, lexer) if body else ()))]


def highlight(source: str) -> str:
    """The source as HTML spans with inline styles, without a frame around it."""
    head, lexer, body = _parts(visible(source))
    spans = [_span(head, _COLOURS[Token.Name.Decorator])] if head else []
    tokens = list(lex(body, lexer)) if body else []
    for kind, text in tokens:
        spans.append(_span(text, _colour(kind)))
    return "".join(spans).rstrip("\n")


def call_title(name: str, arguments: Mapping[str, Any]) -> str:
    """One line that says what a call is about: a path, a pattern, the first line of code."""
    path = str(arguments.get("path", ""))
    match name:
        case "python" | "bash":
            title = _first_line(str(arguments.get("code") or arguments.get("command") or ""))
        case "write_file":
            lines = str(arguments.get("content", "")).rstrip("\n").count("\n") + 1
            title = f"{path} ({'+' if arguments.get('append') else ''}{lines} line{'s' if lines > 1 else ''})"
        case "search_files":
            title = f"{arguments.get('pattern', '')} in {path or '.'}"
        case "wait":
            until = f" until {arguments['until']!r}" if arguments.get("until") else ""
            most = f", at most {arguments['seconds']:g} s" if arguments.get("seconds") else ""
            title = f"{'stop ' if arguments.get('stop') else ''}{arguments.get('call', 'last')}{until}{most}"
        case "list_files":
            title = " ".join([path or ".", *([str(arguments["pattern"])] if arguments.get("pattern") else [])])
        case "read_file":
            title = f"{path} from line {arguments['offset']}" if arguments.get("offset", 1) != 1 else path
        case _:
            title = path or next((str(value) for value in arguments.values()), "")
    line = " ".join(title.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def _first_line(code: str) -> str:
    """The first line that says something: a comment without its sign, or a statement that is more than preparation."""
    lines = [words for line in code.splitlines() if (words := line.strip().lstrip("#").strip())]
    return next((line for line in lines if not line.startswith(_PREPARATION)), lines[0] if lines else "")


def _parts(source: str) -> tuple[str, Any, str]:
    """The line of a cell magic, the lexer for what follows, and what follows."""
    first, newline, body = source.partition("\n")
    if not first.startswith("%%"):
        return "", lexers.PythonLexer(stripnl=False), source
    if first.startswith("%%writefile"):
        return first + newline, _lexer_for_file(first.split()[-1].strip("\"'")), body
    return first + newline, lexers.BashLexer(stripnl=False) if first.startswith("%%bash") else lexers.TextLexer(), body


def _lexer_for_file(name: str) -> Any:
    try:
        return lexers.get_lexer_for_filename(name, stripnl=False)
    except util.ClassNotFound:
        return lexers.TextLexer(stripnl=False)


def _colour(kind: Any) -> str | None:
    while kind is not Token:
        if kind in _COLOURS:
            return _COLOURS[kind]
        kind = kind.parent
    return None


def _span(text: str, colour: str | None) -> str:
    escaped = html.escape(text)
    return f'<span style="color:{colour}">{escaped}</span>' if colour and text.strip() else escaped
