"""Writing: ``write_file``, ``search_replace`` and the ``%%writefile`` magic. They print what is now in the file.

Files are replaced atomically and keep their mode and their line ends. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from harness_nb.tools.entries import existing_file
from harness_nb.tools.formats import refuse_binary
from harness_nb.tools.nearest import describe_matches, describe_nearest, numbered_line
from harness_nb.tools.workspace import brief, counted, plainly, quoted, resolve, shown

CONTEXT_LINES = 3
SHOWN_LINES = 40
COUNTED_BYTES = 20_000_000


def write_file(path: str, content: str, append: bool = False) -> None:
    """Write ``content`` to a file exactly as it is, making the folders above it; ``append`` adds it at the end.

    Raises:
        IsADirectoryError, NotADirectoryError, PermissionError, ValueError: with a sentence that says what to do.
    """
    _write(path, content, append, "" if content.endswith("\n") or not content else ", without a final newline")


def _write(path: str, content: str, append: bool, ending: str) -> None:
    """Write and say what was done; ``ending`` is what to say of the last line's end."""
    target = resolve(path)
    data = _encoded(content, "content")
    with plainly(target, "written"):
        if target.is_dir():
            raise brief(IsADirectoryError(f"{quoted(path)} is a folder; give the path of a file"))
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            message = f"a part of {quoted(path)} is a file, so nothing can be below it"
            raise brief(NotADirectoryError(message)) from None
        existed = target.exists()
        if append and existed:
            said = f"Appended to {shown(target)}: {_size(data)}{ending}{_append(target, data)}"
        else:
            was = f" (was {_was(target, data)})" if existed else ""
            said = f"{'Replaced' if existed else 'Created'} {shown(target)}{was}: {_size(data)}{ending}"
            replace_file(target, data)
    print(said)


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"{what} holds a lone surrogate at character {error.start}, which UTF-8 cannot say; remove it"
        raise brief(ValueError(message)) from None


def _append(target: Path, data: bytes) -> str:
    """Add ``data`` at the end; return what the whole now is."""
    with target.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        glued = bool(data) and file.read(1) not in (b"", b"\n")
    with target.open("ab") as file:
        file.write(data)
    whole = counted(size + len(data), "byte") if size > COUNTED_BYTES else _size(target.read_bytes())
    told = "; its last line had no final newline, so the new text goes on in that line" if glued else ""
    return f"; it now has {whole}{told}"


def _was(target: Path, data: bytes) -> str:
    """What a file that is to be replaced holds, in short."""
    size = target.stat().st_size
    if size > COUNTED_BYTES:
        return counted(size, "byte")
    old = target.read_bytes()
    if old == data:
        return "the same"
    if not old:
        return "empty"
    return counted(size, "byte") if b"\0" in old else counted(_lines(old), "line")


def _lines(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def _size(data: bytes) -> str:
    return f"{counted(_lines(data), 'line')}, {counted(len(data), 'byte')}"


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
    if not search:
        raise brief(ValueError("search is empty; give the text to replace, or use write_file for a whole file"))
    if search == replace:
        raise brief(ValueError("search and replace are the same, so nothing would change"))
    _encoded(replace, "replace")
    with plainly(target, "changed"):
        refuse_binary(target)
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
        name = quoted(shown(target))
        message = f"{name} is not UTF-8 (from byte {error.start} on); edit it with python and its own encoding"
        raise brief(ValueError(message)) from None


def _with_line_ends(text: str, piece: str) -> str:
    """``piece`` with the line ends of ``text`` where all of its lines end in CRLF."""
    if "\r\n" not in text or text.count("\n") != text.count("\r\n"):
        return piece
    return piece.replace("\r\n", "\n").replace("\n", "\r\n")


def _refusal(name: str, text: str, search: str, replace: str, count: int) -> str:
    """Why nothing was replaced, and what would help."""
    message = f"search matches {count} times in {name}; nothing was changed."
    told = describe_matches(text, search) if count else describe_nearest(text, search, replace)
    return f"{message} {told}"


def _print_change(name: str, text: str, start: int, replaced: str) -> None:
    """Say where the change is and print the new lines with three lines around them."""
    lines = text.split("\n")
    first = text.count("\n", 0, start)
    last = first + replaced.count("\n")
    numbers = list(range(max(0, first - CONTEXT_LINES), min(len(lines), last + CONTEXT_LINES + 1)))
    if numbers and numbers[-1] == len(lines) - 1 and not lines[-1]:
        numbers.pop()
    told = "The text there is now:" if numbers else "The file is now empty."
    print(f"Replaced 1 match in {name} at line {first + 1}. {told}")
    for position, number in enumerate(numbers):
        if len(numbers) > SHOWN_LINES and SHOWN_LINES // 2 <= position < len(numbers) - SHOWN_LINES // 2:
            if position == SHOWN_LINES // 2:
                print(f"      \t… {counted(len(numbers) - SHOWN_LINES, 'line')} not shown …")
            continue
        print(numbered_line(lines, number))


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
    _write(paths[0], cell, append, " with the final newline" if cell.endswith("\n") else ", without a final newline")
