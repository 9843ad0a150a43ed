"""What a semicolon at the end of a cell hides, hidden in a way that holds wherever the cell runs. Pure.

IPython looks for the semicolon in its history. nbval runs cells without a history, and the value is shown after all.
"""

from __future__ import annotations

import ast
import io
import tokenize

_NO_CODE = (tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT)


def as_assignment(source: str) -> str:
    """A cell whose last line is ``value;`` with ``_ = value`` there; any other cell as it is."""
    try:
        statements = ast.parse(source).body
        tokens = [
            token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in _NO_CODE
        ]
    except (SyntaxError, ValueError, tokenize.TokenError):
        return source
    if not statements or not isinstance(last := statements[-1], ast.Expr) or tokens[-1].string != ";":
        return source
    lines = source.split("\n")
    row, column = tokens[-1].start
    lines[row - 1] = lines[row - 1][:column].rstrip() + lines[row - 1][column + 1 :]
    first = lines[last.lineno - 1].encode()
    lines[last.lineno - 1] = (first[: last.col_offset] + b"_ = " + first[last.col_offset :]).decode()
    return "\n".join(lines)


def reads_underscore(source: str) -> bool:
    """Whether a cell reads ``_``, the last value that was shown."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return "_" in source.split()
    return any(
        isinstance(node, ast.Name) and node.id == "_" and isinstance(node.ctx, ast.Load) for node in ast.walk(tree)
    )
