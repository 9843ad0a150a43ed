"""Sessions for the tests of the export: cells that really ran, in one namespace and one folder, told as events.

``Recorded`` runs Python in this process with the workspace as working directory; what it does to files becomes
``files_changed`` events, unless ``files`` is false. ``run_plainly`` runs the code cells of an export in the same way,
in a fresh namespace without harness_nb.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from harness_nb import events as ev
from harness_nb.tools.names import manifest
from harness_nb.toolset import STANDARD_TOOLS, Toolset
from harness_nb.types import Decision, JsonObject, Message, Status, ToolCall, text_content

ALLOW = Decision(verdict="allow", reason="inside the workspace", policy="allow_by_default")
PLOT = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}, "metadata": {}}


class Recorded:
    """A session in the making. ``blobs`` is the file store, ``namespace`` the kernel."""

    def __init__(self, workspace: Path, *, files: bool = True, prompt: str = "Find the answer.") -> None:
        self.workspace = workspace
        self.files = files
        self.blobs: dict[str, bytes] = {}
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.count = 1
        self.calls = 0
        self._before = self._look()
        self.events: list[ev.Event] = [
            ev.SessionStarted(
                session_id="20260101-000000-abcd",
                format_version=2,
                harness_version="0",
                model="scripted:x.json",
                workspace=str(workspace),
                kernel="python3",
                environment={"Python": f"{sys.version.split()[0]} on Linux", "Distributions": {"numpy": "2.4.6"}},
            ),
            ev.PromptAdded(prompt=prompt),
        ]
        self._toolset = Toolset(STANDARD_TOOLS)
        self._made: dict[str, tuple[int, int]] = {}

    def blob(self, digest: str) -> bytes | None:
        return self.blobs.get(digest)

    def call(
        self,
        tool: str,
        arguments: JsonObject,
        say: str = "",
        status: Status | None = None,
        outputs: list[JsonObject] | None = None,
        trace: bool = True,
    ) -> str:
        """One reply with one call that runs. ``status`` and ``outputs`` are taken from the run unless given."""
        self.calls, self.count = self.calls + 1, self.count + 1
        call = ToolCall(call_id=f"call_{self.calls}", name=tool, arguments=arguments)
        source = self._toolset.render(call)
        about = {"call_id": call.call_id, "name": tool}
        message = Message(role="assistant", content=text_content(say) if say else (), tool_calls=(call,))
        self.events += [
            ev.ModelReplied(turn=self.calls, message=message),
            ev.CallDecided(**about, call=call, source=source, decision=ALLOW),
            ev.CellStarted(**about, source=source),
        ]
        ran, made = run_source(source, tool, self.namespace, self.workspace, self.count)
        if not trace:
            made = [output for output in made if output["output_type"] != "error"]
        for output in [*made, *(outputs or [])]:
            self.events.append(ev.CellOutput(**about, output=output))
        rows = manifest(self.namespace, (), self.count, self._made)
        finished = ev.CellFinished(**about, status=status or ran, execution_count=self.count, names=tuple(rows))
        self.events.append(finished)
        self._record_files(about)
        self.events.append(ev.ResultAdded(**about, status=status or ran, content=text_content("")))
        return call.call_id

    def python(self, code: str, say: str = "", **more: Any) -> str:
        return self.call("python", {"code": code}, say, **more)

    def finish(self, summary: str) -> None:
        self.events.append(ev.FinishAccepted(summary=summary, checks=0))
        self.events.append(ev.SessionEnded(reason="finished"))

    def die(self) -> None:
        """The kernel dies in its next cell."""
        self.python("import os", status=Status.KERNEL_DIED)
        self.namespace = {"__name__": "__main__"}
        self._made = {}
        self.count = 0

    def _record_files(self, about: dict[str, str]) -> None:
        now = self._look()
        changes = [
            ev.FileChange(path=path, before=self._before.get(path), after=now.get(path), size=len(self._size(path)))
            for path in sorted({*now, *self._before})
            if now.get(path) != self._before.get(path)
        ]
        self._before = now
        if changes and self.files:
            self.events.append(ev.FilesChanged(**about, changes=tuple(changes)))

    def _size(self, path: str) -> bytes:
        file = self.workspace / path
        return file.read_bytes() if file.is_file() else b""

    def _look(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.workspace.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                data = path.read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                self.blobs[digest] = data
                found[path.relative_to(self.workspace).as_posix()] = digest
        return found


def run_source(
    source: str, tool: str, namespace: dict[str, Any], workspace: Path, count: int
) -> tuple[Status, list[JsonObject]]:
    """Run one cell: Python, ``%%bash``, ``%%writefile``, or one of the functions of the harness."""
    if tool in ("read_file", "list_files", "search_files"):
        return Status.OK, [{"output_type": "stream", "name": "stdout", "text": "looked\n"}]
    stream = io.StringIO()
    with contextlib.chdir(workspace), contextlib.redirect_stdout(stream):
        try:
            if source.startswith("%%writefile"):
                first, _, body = source.partition("\n")
                with Path(first.split()[-1]).open("a" if " -a " in first else "w") as file:
                    file.write(body + "\n")
            elif source.startswith("%%bash"):
                script = source.partition("\n")[2]
                done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
                stream.write(done.stdout)
                if done.returncode:
                    return Status.ERROR, _outputs(stream)
            elif tool == "search_replace":
                exec(source, {"search_replace": _search_replace})
            else:
                plain = "\n".join("pass" if line.startswith("%") else line for line in source.split("\n"))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ResourceWarning)  # as a person's code leaves files open
                    exec(compile(plain, f"<cell {count}>", "exec"), namespace)
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == f"<cell {count}>"]
            line = f"Cell In[{count}], line {frames[0].lineno}" if frames else ""
            text = ["Traceback (most recent call last)", line, str(error)] if frames else [str(error)]
            shown = {"output_type": "error", "ename": type(error).__name__, "evalue": str(error), "traceback": text}
            return Status.ERROR, [*_outputs(stream), shown]
    return Status.OK, _outputs(stream)


def _outputs(stream: io.StringIO) -> list[JsonObject]:
    return [{"output_type": "stream", "name": "stdout", "text": stream.getvalue()}] if stream.getvalue() else []


def _search_replace(path: str, search: str, replace: str) -> None:
    text = Path(path).read_text()
    if text.count(search) != 1:
        raise ValueError("search does not match once")
    Path(path).write_text(text.replace(search, replace))


def run_plainly(notebook: JsonObject, workspace: Path) -> dict[str, Any]:
    """Run the code cells of an export top to bottom; the namespace at the end. Raises what a cell raises."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate((cell for cell in notebook["cells"] if cell["cell_type"] == "code"), start=1):
        importless = {name for name in sys.modules if name.split(".")[0] in ("model", "helpers")}
        for name in importless if count == 1 else ():
            del sys.modules[name]
        status, outputs = run_source(cell["source"], "python", namespace, workspace, count)
        assert status is Status.OK, (cell["source"], outputs)
    return namespace


def code_of(notebook: JsonObject) -> list[str]:
    """The sources of the code cells, without the one that states the versions."""
    sources = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [source for source in sources if "def check_versions" not in source]


def words_of(notebook: JsonObject) -> str:
    return "\n\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
