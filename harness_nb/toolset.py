"""The tools that a model sees, and the one cell that each call renders to. Pure.

A tool is a function from its arguments to the source of a cell: its signature is the schema, its docstring is the
description, its return value is what will run in the tool kernel and stand in the session notebook. ``finish``
renders to nothing; the loop hands it to the finish gate. The loop and the session use this module; it must not import
IPython, a kernel or a model.
"""

from __future__ import annotations

import inspect
import posixpath
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from harness_nb.types import JsonObject, ToolCall, ToolSpec

DEFAULT_TIMEOUT = 120.0
"""Seconds that a cell may run when the call names no ``timeout``."""

FILE_TIMEOUT = 30.0
"""Seconds that a cell of a file tool may run; a search with a pattern that never ends is stopped then."""

MAX_TIMEOUT = 3600.0
"""The longest ``timeout`` that a call may name, in seconds."""

_NOT_IN_CELLS = "\r\0\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters that notebooks, editors or IPython take for an end of line. IPython also drops blank ends of cells."""

FINISH = "finish"
WAIT = "wait"
WEB_FETCH = "web_fetch"
REBUILD = "rebuild"

Timeout = Annotated[
    float,
    Field(description="Seconds after which you hear of the call although it still runs.", gt=0, le=MAX_TIMEOUT),
]
Path = Annotated[str, Field(description="Path relative to the workspace; outside of it is refused.", min_length=1)]


def python(
    code: Annotated[str, Field(description="Python source of one cell.")], timeout: Timeout = DEFAULT_TIMEOUT
) -> str:
    """Run Python code as one notebook cell in a kernel that stays alive between calls.

    Names, imports, loaded data and the working directory persist: load data once and go on with it in later calls.
    The value of the last expression is shown, and so is everything that is printed or displayed. Matplotlib plots
    come back to you as pictures (unscaled up to 10 inches wide); end such a cell with plt.show(). %pip and other
    IPython magics work. A call that runs longer than `timeout` seconds (default 120, at most 3600) is not stopped:
    you get its output so far and its id, it goes on, and `wait` watches it. So give a training a short timeout such
    as 5, print a line of metrics per epoch, and `wait`. Output beyond about 16,000 characters is shortened in the
    middle; the whole of it is in a file that is named.
    """
    return code


def bash(
    command: Annotated[str, Field(description="Command line or script.")], timeout: Timeout = DEFAULT_TIMEOUT
) -> str:
    """Run a script with bash, as a fresh process in the working directory of the Python kernel.

    That is the workspace, unless Python code has changed it; `python` and `python3` are the kernel's own. Files
    persist between calls; `cd`, `export`, aliases and shell variables do not, so put what belongs together into one
    call. There is no terminal and no standard input. stdout and stderr come back in order, then the exit status of
    the last command if it is not 0. A process started with & lives on after the call, until the session ends: send
    its output to a file, end it with kill. A call that runs longer than `timeout` seconds (default 120, at most 3600)
    is not stopped: you get its output so far and its id, it goes on, and `wait` watches it. Output beyond about
    16,000 characters is shortened in the middle; the whole of it is in a file that is named.
    """
    return f"%%bash\n{command}"


def read_file(
    path: Path,
    offset: Annotated[int, Field(description="First line to read, counted from 1.", ge=1)] = 1,
    limit: Annotated[int, Field(description="Number of lines to read.", ge=1, le=2000)] = 400,
) -> str:
    """Read a text file, with line numbers. At most `limit` lines (default 400) from line `offset` (default 1) on.

    Long answers are cut at about 15,000 characters. The answer says how many lines the file has and how to read on.
    The numbers, with the blanks before and the tab behind them, are not part of the file.
    """
    window = (f", offset={offset}" if offset != 1 else "") + (f", limit={limit}" if limit != 400 else "")
    return f"read_file({path!r}{window})"


def write_file(
    path: Path,
    content: Annotated[str, Field(description="The whole new text; a final newline is added where it lacks one.")],
    append: Annotated[bool, Field(description="Add to the end of the file instead of replacing it.")] = False,
) -> str:
    """Create a text file or replace it whole, or append to it. Missing folders are made.

    To change a part of an existing file use search_replace. A long file can be written in several calls with
    append=true. Files that are read-only in this session are refused.
    """
    body = content.removesuffix("\n")
    odd_text = not body or body[-1].isspace() or any(character in body for character in _NOT_IN_CELLS)
    if odd_text or '"' in path or not path.isprintable():
        return f"write_file({path!r}, {literal(content)}, append={append})"
    target = path if path.translate(str.maketrans("", "", "/.-_")).isalnum() else f'"{path}"'
    flag = "-a " if append else ""
    return f"%%writefile {flag}{target}\n{body}"


def search_replace(
    path: Path,
    search: Annotated[
        str, Field(description="The exact text to find, with enough lines around it to be unique.", min_length=1)
    ],
    replace: Annotated[str, Field(description="The text to put in its place.")],
) -> str:
    """Replace one exact piece of text in a file. `search` must occur exactly once, white space included.

    The answer shows the changed lines with their numbers. If there is no match or more than one, nothing is changed
    and the answer says how many there were and where, or which lines come nearest.
    """
    return f"search_replace(\n    {path!r},\n    search={literal(search)},\n    replace={literal(replace)},\n)"


def list_files(
    path: Path = ".",
    pattern: Annotated[
        str | None,
        Field(description="Glob such as *.py, looked for in all folders below; without it one folder is listed."),
    ] = None,
) -> str:
    """List a folder of the workspace, with sizes; folders end in /. Hidden files and caches are left out."""
    if pattern is None:
        return "list_files()" if path == "." else f"list_files({path!r})"
    return f"list_files({path!r}, pattern={pattern!r})"


def search_files(
    pattern: Annotated[str, Field(description="Regular expression (Python's re) for one line.", min_length=1)],
    path: Path = ".",
) -> str:
    """Search the text files below a folder for a regular expression.

    Gives path:line: text for each hit, up to a cap that is said.
    """
    return f"search_files({pattern!r})" if path == "." else f"search_files({pattern!r}, {path!r})"


def view_image(path: Path) -> str:
    """Look at a picture file (PNG, JPEG, GIF, WebP); it comes back to you as a picture, at most 1,024 pixels a side."""
    return f"view_image({path!r})"


def wait(
    call: Annotated[str, Field(description="Id of a call that is still running, or last.")] = "last",
    seconds: Annotated[float, Field(description="The longest time to wait, in seconds.", ge=0, le=7200)] = 600.0,
    until: Annotated[
        str | None, Field(description=r"Regular expression to look for in its new output, such as val_acc: 0\.[89].")
    ] = None,
    stop: Annotated[bool, Field(description="Interrupt the call instead of waiting for it.")] = False,
) -> str:
    """Watch a python or bash call that is still running; it costs one turn, however long it waits.

    Returns when the call ends, when `until` matches, at a bad sign (a loss that is NaN or infinite, 10 minutes
    without any output), or after `seconds` (default 600, at most 7200), with what the call has put out since you last
    heard of it. While a python call runs, bash and the file tools work; another python call does not.
    """
    return ""


def rebuild() -> str:
    """After the kernel has died: run your python calls that had ended well again, in order, to get their names back.

    Long ones run again too, and what they wrote to files they write again; where you have saved a result, such as
    weights, loading it is quicker. Calls that failed or were stopped are not run.
    """
    return ""


def web_fetch(
    url: Annotated[str, Field(description="Whole address, with http:// or https://.", min_length=1)],
) -> str:
    """Fetch one page of the public web as text; HTML comes as Markdown, with its links.

    The person is asked first, and sees the whole address. Only text is fetched, the first 2 MB of it, from the usual
    ports of public hosts; there is nothing to log in with, and no script runs. A long page is shortened in the middle;
    the whole of it is in a file that is named.
    """
    return f"web_fetch({url!r})"


def finish(
    summary: Annotated[str, Field(description="What was done and found, for the person who asked; Markdown.")],
) -> str:
    """Say that the task is done. The harness then runs its own checks; if one fails, you get its output and go on.

    Call it last: calls behind it in the same reply are not run.
    """
    return ""


class Tool:
    """One tool: its specification for the model, and the rendering of a call to the source of a cell."""

    def __init__(self, function: Callable[..., str]) -> None:
        self.name = function.__name__
        self._function = function
        self._arguments = _arguments_model(function)
        description = inspect.cleandoc(function.__doc__ or "")
        paragraphs = [" ".join(paragraph.split()) for paragraph in description.split("\n\n")]
        self.spec = ToolSpec(
            name=self.name,
            description="\n\n".join(paragraphs),
            parameters=_plain_schema(self._arguments.model_json_schema()),
        )

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """The validated arguments of a call, defaults filled in.

        Raises:
            pydantic.ValidationError: if they do not fit the signature.
        """
        return self._arguments.model_validate(call.arguments).model_dump()

    def render(self, call: ToolCall) -> str:
        """The source of the one cell that this call is."""
        return self._function(**self.arguments(call))


class Toolset:
    """The tools of a session, in the order in which the model sees them. ``workspace`` is an absolute path."""

    def __init__(self, functions: Iterable[Callable[..., str]], workspace: str = "") -> None:
        self._tools = {tool.name: tool for tool in map(Tool, functions)}
        self._workspace = workspace

    @property
    def workspace(self) -> str:
        """The folder that the tools work in."""
        return self._workspace

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told."""
        return tuple(tool.spec for tool in self._tools.values())

    def problem(self, call: ToolCall) -> str | None:
        """Why a call cannot be rendered, as a sentence that the model can act on; ``None`` if it can."""
        if call.name not in self._tools:
            return f"There is no tool named {call.name!r}. The tools are: {', '.join(self._tools)}."
        if call.malformed is not None:
            return (
                f"The arguments of {call.name} are not a whole JSON object (they begin with "
                f"{call.malformed[:80]!r}), so the call was not run. If the reply was cut off at the output limit "
                "(max_output_tokens), send less in one call: write long files in parts with append=true."
            )
        try:
            self._tools[call.name].arguments(call)
        except ValidationError as error:
            details = "; ".join(_describe(item) for item in error.errors())
            expected = ", ".join(self._tools[call.name].spec.parameters.get("properties", {}))
            return f"The arguments of {call.name} do not fit: {details}. It takes: {expected}. The call was not run."
        return None

    def localise(self, call: ToolCall) -> ToolCall:
        """The same call with an absolute path into the workspace made relative: cells read the same anywhere."""
        path = call.arguments.get("path")
        if not self._workspace or not isinstance(path, str) or not posixpath.isabs(path):
            return call
        relative = posixpath.relpath(path, self._workspace)
        if relative.split("/")[0] == "..":
            return call
        return call.model_copy(update={"arguments": {**call.arguments, "path": relative}})

    def render(self, call: ToolCall) -> str:
        """The source of the one cell that a call is; empty for ``finish``."""
        return self._tools[call.name].render(call)

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """The validated arguments of a call without a problem, defaults filled in."""
        return self._tools[call.name].arguments(call)


STANDARD_TOOLS: tuple[Callable[..., str], ...] = (
    python,
    bash,
    read_file,
    write_file,
    search_replace,
    list_files,
    search_files,
    view_image,
    wait,
    rebuild,
    finish,
)

WEB_TOOLS: tuple[Callable[..., str], ...] = (web_fetch,)
"""Tools that a session has with ``--web``; they stand before ``finish``."""


def tools_for(web: bool) -> tuple[Callable[..., str], ...]:
    """The tools of a session, in the order in which the model sees them."""
    return (*STANDARD_TOOLS[:-1], *WEB_TOOLS, *STANDARD_TOOLS[-1:]) if web else STANDARD_TOOLS


def literal(text: str) -> str:
    """A Python string literal for ``text`` that a person can read.

    Triple-quoted, and raw if need be, where it has several lines.
    """
    several = "\n" in text.rstrip("\n") and not any(line != line.rstrip() for line in text.split("\n"))
    if several and text.replace("\n", "").replace("\t", "").isprintable() and not text.endswith("\\"):
        prefix = "r" if "\\" in text else ""
        for quotes in ('"""', "'''"):
            if quotes not in text and text[0] != quotes[0] and text[-1] != quotes[0]:
                return f"{prefix}{quotes}{text}{quotes}"
    return repr(text)


def _arguments_model(function: Callable[..., str]) -> type[BaseModel]:
    """A pydantic model with a field per parameter of ``function``."""
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (parameter.annotation, default)
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _plain_schema(schema: JsonObject) -> JsonObject:
    """A JSON Schema without pydantic's titles, and ``X | None`` written as a plain optional ``X``.

    Models read it with less effort.
    """
    plain: JsonObject = {key: value for key, value in schema.items() if key != "title"}
    for name, field in plain.get("properties", {}).items():
        options = [option for option in field.get("anyOf", []) if option != {"type": "null"}]
        if len(options) == 1:
            field = {**options[0], **{key: value for key, value in field.items() if key not in ("anyOf", "default")}}
        plain["properties"][name] = {key: value for key, value in field.items() if key != "title"}
    return plain


def _describe(item: Any) -> str:
    """One validation error as words."""
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] == "missing":
        return f"{place} is missing"
    if item["type"] == "extra_forbidden":
        return f"{place} is not a parameter"
    return f"{place}: {item['msg']}"
