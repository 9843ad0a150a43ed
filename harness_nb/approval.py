"""Approvers that need no notebook: nobody, a fixed list of answers, a person at a terminal.

The session picks one by its policy; the magics bring their own (``ui.approve``). ``FixedApprover`` is the fake that
ships.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from harness_nb.outputs import clean_text
from harness_nb.policy import kind_of
from harness_nb.types import Approval, Decision, ToolCall


class DenyApprover:
    """For runs in which nobody can answer: every question is denied at once."""

    def __init__(self, why: str = "nobody is there to ask") -> None:
        self._why = why

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Deny, with the reason of the decision."""
        return Approval(approved=False, reason=f"{decision.reason} ({self._why})", by="nobody")

    @property
    def can_answer(self) -> bool:
        """Nobody is there."""
        return False

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Nobody answers."""
        return None


class FixedApprover:
    """Gives the answers and lines it was made with, in order; then denies, and answers nothing.

    Keeps what it was asked in ``asked``, and the questions of tool code, with whether they are secret, in
    ``questions``.
    """

    def __init__(self, answers: Iterable[Approval] = (), lines: Iterable[str] = ()) -> None:
        self._answers = list(answers)
        self._lines = list(lines)
        self.asked: list[ToolCall] = []
        self.questions: list[tuple[str, bool]] = []

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """The next answer."""
        self.asked.append(call)
        return (
            self._answers.pop(0) if self._answers else Approval(approved=False, reason="no answer is left", by="nobody")
        )

    @property
    def can_answer(self) -> bool:
        """Whether a line is left."""
        return bool(self._lines)

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """The next line."""
        self.questions.append((question, secret))
        return self._lines.pop(0) if self._lines else None


class TerminalApprover:
    """Asks a person at a terminal; denies at once where standard input is none."""

    def __init__(self, source: TextIO | None = None, screen: TextIO | None = None) -> None:
        self._source = source or sys.stdin
        self._screen = screen or sys.stderr
        self._turn = asyncio.Lock()
        self._asking = asyncio.Lock()
        self._waiting = 0

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """Show the whole cell and the reason, one call after the other, and wait for a line."""
        if not self.can_answer:
            return await DenyApprover("no terminal to ask at").ask(call, source, decision)
        self._waiting += 1
        try:
            async with self._asking:
                return await self._ask(call, source, decision)
        finally:
            self._waiting -= 1

    async def _ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        more = f" ({self._waiting - 1} more to come)" if self._waiting > 1 else ""
        width = shutil.get_terminal_size().columns
        self._screen.write(f"\n{visible(call.name)} asks for your approval{more}: {visible(decision.reason)}\n\n")
        self._screen.write(in_gutter(source, width) + "\n\n")
        trouble = ""
        while True:
            kind = visible(kind_of(call, source).words)
            line = (
                await self._read_line(f"{trouble}Run it? [y/N, a: always here ({kind}), e: edit, or n and a word] ")
                or ""
            )
            try:
                if line.strip().lower() != "e":
                    return read_typed(line, call)
                edited = await asyncio.to_thread(self._edit, call)
                self._screen.write(in_gutter("\n".join(editable(edited).values()), width) + "\n\n")
                return Approval(approved=True, edited=edited)
            except (ValueError, OSError) as error:
                trouble = f"{error}. "

    def _edit(self, call: ToolCall) -> ToolCall:
        """The call as the person changes it in their editor.

        Raises:
            ValueError: if nothing was changed, or there is no text to change.
            OSError: if there is no editor.
        """
        name = main_argument(call)
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        if not name:
            raise ValueError("this call has no text to change")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "call.py" if name == "code" else "call.txt")
            path.write_text(call.arguments[name], "utf-8")
            if (code := subprocess.run([*editor, str(path)], check=False).returncode) != 0:
                raise ValueError(f"{editor[0]} ended with {code}; nothing has been changed")
            text = path.read_text("utf-8")
        return with_texts(call, {name: text.removesuffix("\n") if not call.arguments[name].endswith("\n") else text})

    @property
    def can_answer(self) -> bool:
        """Whether there is a terminal."""
        return self._source.isatty()

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """Put the question of tool code to the person, and read a line (unseen if ``secret``)."""
        return await self._read_line(f"\n{asked_by_code(question)}", secret) if self.can_answer else None

    async def _read_line(self, question: str, secret: bool = False) -> str | None:
        """A line that the person types; ``None`` for the end of the file (Ctrl-D).

        One question at a time. A terminal hands over whole lines, so nothing blocks here, and a cancellation leaves
        no thread behind that would wait for a key.
        """
        loop, there = asyncio.get_running_loop(), asyncio.Event()
        async with self._turn:
            with _unechoed(self._source) if secret else nullcontext():
                self._screen.write(question)
                self._screen.flush()
                loop.add_reader(self._source.fileno(), there.set)
                try:
                    await there.wait()
                finally:
                    loop.remove_reader(self._source.fileno())
                line = self._source.readline()
            if secret:
                self._screen.write("\n")
        return line.removesuffix("\n") if line else None


@contextmanager
def _unechoed(terminal: TextIO) -> Iterator[None]:
    """What is typed is not seen."""
    import termios

    before = termios.tcgetattr(terminal)
    flags = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, flags)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def visible(text: str) -> str:
    """Control and direction characters written out: none may hide or reorder what a person reads or approves."""
    return "".join(sign if sign.isprintable() or sign in "\n\t" else repr(sign)[1:-1] for sign in text)


def in_gutter(source: str, width: int) -> str:
    """The source for a terminal, whole: each line behind a bar, long ones broken, so that none passes for a prompt."""
    lines = []
    for line in visible(source).expandtabs(4).split("\n"):
        room = max(width - 3, 20)
        pieces = [line[at : at + room] for at in range(0, len(line), room)] or [""]
        lines += [f"{'┊' if number else '│'} {piece}".rstrip() for number, piece in enumerate(pieces)]
    return "\n".join(lines)


def asked_by_code(question: str) -> str:
    """The question of tool code as a person is shown it: nobody may take it for a question of the harness."""
    return f"The running code asks: {clean_text(question).strip() or '(no question)'} "


def editable(call: ToolCall) -> dict[str, str]:
    """The arguments of a call as texts that a person can change: strings as they are, all others as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in call.arguments.items()
    }


def with_texts(call: ToolCall, texts: Mapping[str, object]) -> ToolCall:
    """The call with changed arguments, as ``editable`` gives them; an argument without a text stays.

    Raises:
        ValueError: if an argument that is no string is no JSON any more, or is unknown, or nothing has changed.
    """
    arguments = dict(call.arguments)
    for name, text in texts.items():
        if name not in arguments or not isinstance(text, str):
            raise ValueError(f"{name} is no argument of this call")
        try:
            arguments[name] = text if isinstance(arguments[name], str) else json.loads(text)
        except ValueError as error:
            raise ValueError(f"{name} is not JSON: {error}") from error
    if arguments == call.arguments:
        raise ValueError("nothing has been changed")
    return call.model_copy(update={"arguments": arguments})


def main_argument(call: ToolCall) -> str:
    """The name of the argument that a person changes first: the code, the command, the content; empty for none."""
    texts = {name: value for name, value in call.arguments.items() if isinstance(value, str)}
    return next(
        (name for name in ("code", "command", "content", "replace", "url") if name in texts), next(iter(texts), "")
    )


def read_typed(line: str, call: ToolCall) -> Approval:
    """As ``read_answer``; ``e TEXT`` runs the call with that text in the place of its code, command or content.

    Raises:
        ValueError: if there is no such text to change; the text says so.
    """
    first, _, text = line.strip().partition(" ")
    if first.lower() != "e":
        return read_answer(line)
    name = main_argument(call)
    if not text.strip() or not name:
        raise ValueError("write e and, behind it, what to run instead" if name else "this call has no text to change")
    return Approval(approved=True, edited=with_texts(call, {name: text}))


def read_answer(line: str) -> Approval:
    """The approval that a typed answer is: yes for y or yes, a for the kind; what follows a no goes to the model."""
    answer, _, word = line.strip().partition(" ")
    if answer.lower() in ("y", "yes"):
        return Approval(approved=True)
    if line.strip().lower() == "a":
        return Approval(approved=True, scope="kind")
    said = word if answer.lower() in ("n", "no", "") else line.strip()
    return Approval(approved=False, reason="a person said no" + (f": {said.strip()}" if said.strip() else ""))
