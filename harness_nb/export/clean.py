"""The clean export: a session as a plain notebook that needs no harness. Pure; ``writing`` does the disk's part.

Steps of the work, a module each: ``story`` reads the events, ``history`` the versions of the files, ``flow`` what every
statement needs, ``choice`` which are kept, ``files`` and ``imports`` what stands for edits and imports, and this one
puts the cells together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness_nb.events import Event
from harness_nb.export import environment as env
from harness_nb.export.chance import seed_calls, unseeded_generators
from harness_nb.export.choice import Choice, Unresolved, choose
from harness_nb.export.files import Write, plan_writes, write_sources, written_as_text
from harness_nb.export.flow import Flow
from harness_nb.export.history import Blob, Disk, History, NoDisk
from harness_nb.export.imports import Hoisted, hoist_imports, stands_alone, without_statements
from harness_nb.export.mentions import is_local_module, match_paths, module_files
from harness_nb.export.narration import choose_words
from harness_nb.export.nodes import Node
from harness_nb.export.semicolons import as_assignment, reads_underscore
from harness_nb.export.story import Step, Story, read_story
from harness_nb.notebook import texts
from harness_nb.notebook.cells import KEY
from harness_nb.notebook.prose import count, escape_line, title_of
from harness_nb.outputs.mime import clean_json, replace_surrogates
from harness_nb.types import JsonObject

EXPORT_VERSION = 1
"""Version of what is under ``metadata["harness_nb"]["export"]``."""


@dataclass(frozen=True)
class CleanExport:
    """A clean notebook (nbformat 4.5) and what a person should know of it.

    ``notes`` are sentences; ``unresolved`` is what the kept cells need and the record cannot give. ``kept`` and
    ``cells`` count the cells of the session; ``title`` is plain text.
    """

    notebook: JsonObject
    title: str
    notes: tuple[str, ...]
    unresolved: tuple[Unresolved, ...]
    kept: int
    cells: int

    @property
    def complete(self) -> bool:
        """Whether everything that the kept cells need is there."""
        return not self.unresolved


def clean_notebook(events: Sequence[Event], blob: Blob = lambda digest: None, disk: Disk | None = None) -> CleanExport:
    """The minimal plain notebook of a session.

    ``blob`` gives the content of a file version by its SHA-256, ``None`` where it was not kept. ``disk`` is the
    workspace as it is now; it serves where the record has no content, and for the hashes of input files.
    """
    story = read_story(events)
    history = History(story, blob, disk or NoDisk())
    flow = Flow(story, history)
    choice = choose(story, flow, history)
    return _Composer(story, history, flow, choice, disk or NoDisk()).compose()


class _Composer:
    def __init__(self, story: Story, history: History, flow: Flow, choice: Choice, disk: Disk) -> None:
        self.story, self.history, self.flow, self.choice, self.disk = story, history, flow, choice, disk
        self.cells: list[JsonObject] = []
        self.nodes = [node for node in flow.nodes if node.id in choice.nodes]
        self.writes = plan_writes(story, flow, history, choice)
        self.hoisted = Hoisted()
        self._fetched: set[str] = set()
        self._underscore = any(reads_underscore(step.source.text) for step in story.steps)

    def compose(self) -> CleanExport:
        """Head, imports, the kept cells with their words, the answer."""
        placed = list(write_sources(self.writes, self._preexisting))
        more = ["from pathlib import Path"] if any(source.startswith("Path(") for _, source in placed) else []
        known = self.history.known()
        self.hoisted = hoist_imports(self.nodes, lambda module: is_local_module(module, known), more)
        body = self._body(placed)
        title = title_of(self.story.tasks[0].prompt) if self.story.tasks else "Session"
        kept = sum(self._is_kept(step) for step in self.story.steps)
        self._head(title, kept)
        if self.hoisted.lines:
            self._code("\n".join(self.hoisted.lines))
        for tool, source, outputs in body:
            if tool == "markdown":
                self._markdown(source)
            else:
                self._code(source, outputs, ["nbval-ignore-output"] if source.startswith("%%writefile") else [])
        self._number()
        plain = re.sub(r"<[^>]+>|&[a-z]+;|\\(?=\W)", "", title)
        return CleanExport(
            self._notebook(kept), plain, self._notes(kept), tuple(self.choice.unresolved), kept, len(self.story.steps)
        )

    # ---- the cells of the work

    def _is_kept(self, step: Step) -> bool:
        return self.choice.keeps(self.flow, step) or any(write.step == step.number for write in self.writes)

    def _body(self, placed: list[tuple[Write, str]]) -> list[tuple[str, str, list[JsonObject]]]:
        """(kind, source, outputs) of the cells between the imports and the end."""
        words = choose_words(self.story, {step.number for step in self.story.steps if step.ok and self._is_kept(step)})
        items: list[tuple[float, int, str, str, list[JsonObject]]] = []
        for number, texts_before in words.items():
            first = min([w.position for w, _ in placed if w.step == number and w.position < number], default=number)
            items += [(first, 1, "markdown", texts.reply(text), []) for text in texts_before]
        for write, source in placed:
            if write.version.origin == "original":
                told = f"`{write.version.path}` as it was before:"
                items.append((write.position, 0, "markdown", told, []))
            items.append((write.position, 2, "code", source, []))
        for step in self.story.steps:
            if source := self._source(step):
                items.append((float(step.number), 3, "code", source, step.outputs if step.ok else []))
        for number, task in enumerate(self.story.tasks, start=1):
            if number > 1:
                items.append((task.first_step - 0.9, 0, "markdown", texts.task(task.prompt, number), []))
            if task.answer:
                last = self.story.tasks[number].first_step - 0.95 if number < len(self.story.tasks) else 2e9
                items.append((last, 4, "markdown", texts.result(task.answer), []))
        items.sort(key=lambda item: item[:2])
        return [(kind, source, outputs) for _, _, kind, source, outputs in items]

    def _source(self, step: Step) -> str:
        """What is kept of a step's source, without the imports that stand at the top; empty if nothing is."""
        kept = [node for node in self.flow.of_step[step.number] if node.id in self.choice.nodes]
        if not kept or (step.source.kind == "shell" and self._is_written_as_text(step)):
            return ""
        text = step.source.text
        if kept[0].kind != "whole":
            alone = {node.id for node in kept if node.statement is not None and stands_alone(text, node.statement)}
            gone = [node for node in kept if node.id in self.hoisted.nodes & alone]
            whole = step.ok and self.choice.keeps(self.flow, step)
            if whole:
                text = without_statements(text, [node.statement for node in gone if node.statement is not None])
            else:
                text = "\n".join(self._piece(step, node) for node in kept if node.id not in self.hoisted.nodes)
            if not any(line.strip() and not line.strip().startswith("#") for line in text.splitlines()):
                return ""
        text = text.rstrip("\n")
        if step.tool == "python" and not self._underscore:
            text = as_assignment(text)
        text = f"%%bash\n{text}" if step.tool == "bash" and not text.startswith("%%") else text
        workspace = self.history.workspace
        return text.replace(workspace.rstrip("/") + "/", "") if workspace.strip("/") else text

    def _is_written_as_text(self, step: Step) -> bool:
        made = [v for versions in self.history.versions.values() for v in versions if v.since == step.number]
        return bool(made) and all(written_as_text(version, self.story) for version in made)

    def _piece(self, step: Step, node: Node) -> str:
        statement = node.statement
        assert statement is not None
        first = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", []))])
        return "\n".join(step.source.text.split("\n")[first - 1 : statement.end_lineno])

    def _preexisting(self, folder: str) -> bool:
        """Whether a folder was there before the session."""
        before = {path for path, versions in self.history.versions.items() if versions[0].digest}
        return any(
            path.startswith(folder + "/") for path in before | (set(self.disk.paths()) - set(self.history.versions))
        )

    # ---- the head

    def _head(self, title: str, kept: int) -> None:
        started = self.story.started
        of = f" {started.session_id}" if started else ""
        told = f"*Made from the session{of} of harness_nb, which it does not need: {count(kept, 'cell')} of "
        told += f"{len(self.story.steps)} that the result needs, with the outputs that they had there.*"
        self._markdown(f"# {title}\n\n{told}")
        if self.choice.unresolved:
            lines = "\n".join(f"- {escape_line(str(one))}." for one in self.choice.unresolved)
            self._markdown(
                f"**This notebook is not complete.** It will not run from top to bottom as it is:\n\n{lines}"
            )
        if self.story.tasks:
            self._markdown(texts.task(self.story.tasks[0].prompt, 1))
        facts = started.environment if started else {}
        outputs = [str(o.get("text", "")) for step in self.story.steps if step.ok for o in step.outputs]
        pinned, unknown = env.pins(self._modules(), env.known_versions(facts, outputs))
        seeds = sorted({seed for node in self.nodes for seed in seed_calls([node.effects, *node.bodies])})
        self._markdown(env.environment_text(facts, unknown, seeds, self._unseeded()))
        python = str(facts.get("Python", "")).split(" ")[0]
        self._code(env.environment_source(python, pinned))
        if table := self._provenance():
            self._markdown(f"## Data\n\n{table}")

    def _modules(self) -> set[str]:
        """The top-level modules that the kept code imports, in cells and in files of the workspace."""
        known = self.history.known()
        found = set(self.hoisted.modules)
        for node in self.nodes:
            for effects in [node.effects, *node.bodies, *node.effects.bodies.values()]:
                found |= {
                    dotted.split(".")[0] for dotted in effects.imports.values() if not is_local_module(dotted, known)
                }
        for version in {*self.choice.versions}:
            if version.path.endswith(".py"):
                dotted_names = self.flow.code.imports_in(version.path, version.since + 1)
                found |= {one.split(".")[0] for one in dotted_names if not is_local_module(one, known)}
        return {name for name in found if name.isidentifier()}

    def _unseeded(self) -> list[str]:
        found: dict[str, None] = {}
        for node in self.nodes:
            for state in sorted(node.drew_unseeded | unseeded_generators([node.effects, *node.bodies])):
                found.setdefault(f"{state} in {node.step.label} of the session")
        return list(found)

    def _provenance(self) -> str:
        """Downloads of the kept cells and the input files that they name."""
        rows: list[tuple[str, int | None, str, str]] = []
        addresses: list[str] = []
        inputs: set[str] = set()
        untouched = set(self.disk.paths()) - set(self.history.versions)
        for step in self.story.steps:
            nodes = [node for node in self.flow.of_step[step.number] if node.id in self.choice.nodes]
            if not nodes:
                continue
            if urls := env.urls_in(step.source.text):
                addresses += urls
                made = [change for change in step.changes if change.after]
                rows += [(change.path, change.size, change.after or "", f"from {urls[0]}") for change in made[:20]]
                self._fetched |= {change.path for change in made}
            for node in nodes:
                for text, _ in node.mentions:
                    inputs |= match_paths(text, untouched, self.history.workspace)
                for dotted in node.effects.imports.values():
                    inputs |= module_files(dotted, untouched)
        told_of_inputs = "was there before" if self.story.files_known else "is in the workspace"
        for path in sorted(path for path in inputs if not path.startswith("."))[:50]:
            if (fact := self.disk.fact(path)) is not None:
                rows.append((path, *fact, told_of_inputs))
        rows += self._made()
        told = (
            [f"Web addresses in the code: {', '.join(f'<{url}>' for url in dict.fromkeys(addresses))}."]
            if addresses
            else []
        )
        return "\n\n".join([*told, *([env.file_table(rows)] if rows else [])])

    def _made(self) -> Sequence[tuple[str, int | None, str, str]]:
        """The files that the kept cells make and leave."""
        finals = [self.history.final(path) for path in sorted(self.history.versions)]
        steps = self.story.steps
        made = [one for one in finals if one.digest and one.origin == "run" and one.since < len(steps)]
        kept = [one for one in made if self.choice.keeps(self.flow, steps[one.since])]
        return [(one.path, one.size, one.digest, "is made here") for one in kept if one.path not in self._fetched][:50]

    # ---- cells

    def _markdown(self, text: str) -> None:
        self.cells.append({"cell_type": "markdown", "metadata": {}, "source": replace_surrogates(text)})

    def _code(self, source: str, outputs: Sequence[JsonObject] = (), tags: Sequence[str] = ()) -> None:
        cell: JsonObject = {"cell_type": "code", "execution_count": None, "metadata": {"tags": [*tags]} if tags else {}}
        self.cells.append(cell | {"outputs": clean_json(list(outputs)), "source": replace_surrogates(source)})

    def _number(self) -> None:
        """Ids and execution counts."""
        executed = 0
        for index, cell in enumerate(self.cells, start=1):
            cell["id"] = f"export-{index:04d}"
            if cell["cell_type"] == "code":
                executed += 1
                cell["execution_count"] = executed
                cell["outputs"] = [
                    {**output, "execution_count": executed} if output.get("output_type") == "execute_result" else output
                    for output in cell["outputs"]
                ]

    def _notebook(self, kept: int) -> JsonObject:
        started = self.story.started
        export: JsonObject = {"version": EXPORT_VERSION, "complete": not self.choice.unresolved, "kept": kept}
        export |= {"cells": len(self.story.steps), "session_id": started.session_id if started else ""}
        export["unresolved"] = [
            {"cell": one.count, "name": one.name, "reason": one.reason} for one in self.choice.unresolved
        ]
        return {
            "cells": self.cells,
            "metadata": {
                KEY: {"export": clean_json(export)},
                "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }

    def _notes(self, kept: int) -> tuple[str, ...]:
        """What a person is told beside the notebook."""
        reasons: dict[str, list[str]] = {}
        for number, reason in sorted(self.choice.dropped.items()):
            if not self._is_kept(self.story.steps[number]):
                reasons.setdefault(reason, []).append(self.story.steps[number].label.removeprefix("cell "))
        total = len(self.story.steps)
        left = [f"{reason}: {', '.join(labels)}" for reason, labels in reasons.items()]
        dropped = f"{total - kept} of {count(total, 'cell')} left out" + (f" ({'; '.join(left)})." if left else ".")
        missing = [f"{one}." for one in self.choice.unresolved]
        return (dropped, *missing, *(f"{remark}." for remark in self.choice.remarks))
