"""Writing: ``write_file``, ``search_replace`` and the ``%%writefile`` magic. They print what is now in the file.

Files are replaced atomically and keep their mode and their line ends. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from harness_nb.tools.nearest import describe_nearest
from harness_nb.tools.reading import refuse_binary
from harness_nb.tools.workspace import brief, existing_file, resolve, shown

CONTEXT_LINES = 3
SHOWN_LINES = 40


def write_file(path: str, content: str, append: bool = False) -> None:
    """Write ``content`` to a file exactly as it is, making the folders above it; ``append`` adds it at the end.

    Raises:
        IsADirectoryError, NotADirectoryError, PermissionError, ValueError: with a sentence that says what to do.
    """
    target = resolve(path)
    if target.is_dir():
        raise brief(IsADirectoryError(f"{path!r} is a folder; give the path of a file"))
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"the content holds a lone surrogate at position {error.start:,}, which UTF-8 cannot say; remove it"
        raise brief(ValueError(message)) from None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise brief(NotADirectoryError(f"a part of {path!r} is a file, so nothing can be below it")) from None
    existed = target.exists()
    if append and existed:
        with target.open("ab") as file:
            file.write(data)
        whole = target.read_bytes()
        print(f"Appended {_size(data)} to {shown(target)}, which now has {_size(whole)}")
        return
    replace_file(target, data)
    print(f"{'Overwrote' if existed else 'Wrote'} {shown(target)}: {_size(data)}")


def _size(data: bytes) -> str:
    lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
    return f"{lines:,} {'line' if lines == 1 else 'lines'}, {len(data):,} {'byte' if len(data) == 1 else 'bytes'}"


def replace_file(target: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``target`` in one step, so that a reader sees the old file or the new one.

    An existing file keeps its mode; a new one gets what the umask says.
    """
    temporary = target.with_name(f".{target.name[:80]}.{os.getpid()}.tmp")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def search_replace(path: str, search: str, replace: str) -> None:
    """Replace the one place where ``search`` stands in a file and print the new text around it.

    ``search`` must match exactly once, white space included. Line ends and file mode are kept.

    Raises:
        ValueError: if it matches not at all (names the nearest lines) or more than once (names the lines).
        FileNotFoundError, IsADirectoryError, PermissionError: as for the other functions.
    """
    target = existing_file(path)
    refuse_binary(target)
    if not search:
        raise brief(ValueError("search is empty; give the text to replace, or use write_file for a whole file"))
    if search == replace:
        raise brief(ValueError("search and replace are the same, so nothing would change"))
    text = _text(target)
    search, replace = _with_line_ends(text, search), _with_line_ends(text, replace)
    count = text.count(search)
    if count != 1:
        raise brief(ValueError(_refusal(shown(target), text, search, replace, count)))
    start = text.index(search)
    changed = text[:start] + replace + text[start + len(search) :]
    replace_file(target, changed.encode("utf-8"))
    _print_change(shown(target), changed, start, replace)


def _text(target: Path) -> str:
    try:
        return target.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{shown(target)!r} is not UTF-8 (byte {error.start:,}); edit it with python and its own encoding"
        raise brief(ValueError(message)) from None


def _with_line_ends(text: str, piece: str) -> str:
    """``piece`` with the line ends of ``text`` where all of its lines end in CRLF."""
    if "\r\n" not in text or text.count("\n") != text.count("\r\n"):
        return piece
    return piece.replace("\r\n", "\n").replace("\n", "\r\n")


def _refusal(name: str, text: str, search: str, replace: str, count: int) -> str:
    if count > 1:
        lines: list[int] = []
        at = text.find(search)
        while at >= 0 and len(lines) < 20:
            lines.append(text.count("\n", 0, at) + 1)
            at = text.find(search, at + len(search))
        numbers = ", ".join(str(line) for line in lines)
        return (
            f"search matches {count} times in {name} (lines {numbers}{', …' if count > 20 else ''}); "
            f"nothing was changed. Add lines before or after it so that it matches once."
        )
    message = f"search matches 0 times in {name}; nothing was changed."
    if replace.strip() and text.count(replace) == 1:
        line = text.count("\n", 0, text.index(replace)) + 1
        message += f" The replacement text is already there, at line {line}."
    return message + describe_nearest(text, search)


def _print_change(name: str, text: str, start: int, replaced: str) -> None:
    """Say where the change is and print the new lines with three lines around them."""
    lines = text.split("\n")
    first = text.count("\n", 0, start)
    last = first + replaced.count("\n")
    print(f"Replaced 1 match in {name} at line {first + 1}. The text there is now:")
    numbers = list(range(max(0, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES + 1)))
    if numbers and numbers[-1] == len(lines) - 1 and not lines[-1]:
        numbers.pop()
    for position, number in enumerate(numbers):
        if len(numbers) > SHOWN_LINES and SHOWN_LINES // 2 <= position < len(numbers) - SHOWN_LINES // 2:
            if position == SHOWN_LINES // 2:
                print(f"      \t… {len(numbers) - SHOWN_LINES} lines …")
            continue
        print(f"{number + 1:6d}\t{lines[number].rstrip(chr(13))}")


def writefile_magic(line: str, cell: str) -> None:
    """``%%writefile [-a] path``: write the cell's text to a file of the workspace, byte for byte."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise brief(ValueError(f"the line after %%writefile cannot be read: {error}")) from None
    append = any(word in ("-a", "--append") for word in words)
    paths = [word for word in words if word not in ("-a", "--append")]
    if len(paths) != 1:
        raise brief(ValueError("write %%writefile [-a] path, with one path; quote a path that has spaces"))
    write_file(paths[0], cell, append)
