"""What a widget says with everything in it, as text: boxes, tabs, captured outputs, and the controls among them.

Pure; ``views`` calls it when a widget that is on display has changed. A widget that is not known says its class and its
simple traits.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness_nb.outputs.mime import WIDGET_VIEW, bundle_text
from harness_nb.outputs.terminal import clean_text
from harness_nb.outputs.tracebacks import traceback_text
from harness_nb.outputs.widgets.bars import bar, draw_bars
from harness_nb.outputs.widgets.controls import CONTROLS, control_text
from harness_nb.outputs.widgets.models import REFERENCE, WidgetModels
from harness_nb.types import JsonObject

MOST_DEPTH = 20
MOST_TRAIT_CHARS = 100
MOST_TRAITS = 8

_BARS = frozenset({"FloatProgressModel", "IntProgressModel"})
_TEXTS = frozenset({"HTMLModel", "HTMLMathModel", "LabelModel"})
_ROWS = frozenset({"HBoxModel", "BoxModel"})
_COLUMNS = frozenset({"VBoxModel", "GridBoxModel"})
_PAGES = frozenset({"TabModel", "AccordionModel"})
_PLUMBING = re.compile(r"_|layout$|style$|tooltip$|tabbable$|disabled$|css$|esm$")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Twin:
    """A widget as text. ``rich`` are MIME bundles that the text cannot hold, in order: images, tables.

    ``model_ids`` are the models that it has been made of.
    """

    text: str
    rich: tuple[JsonObject, ...]
    model_ids: frozenset[str]

    @property
    def bundle(self) -> JsonObject:
        """The text, and where it has bars, the same with bars drawn in HTML."""
        drawn = draw_bars(self.text)
        return {"text/plain": self.text} if drawn is None else {"text/html": drawn, "text/plain": self.text}


def render_widget(models: WidgetModels, model_id: str) -> Twin:
    """The twin of a widget; a closed one says nothing."""
    reader = _Reader(models)
    text = reader.read(model_id)
    return Twin(text, tuple(reader.rich), frozenset(reader.visited))


class _Reader:
    """Reads one tree of models, and remembers where it has been and what it could not say in words."""

    def __init__(self, models: WidgetModels) -> None:
        self._states = models.states
        self.visited: set[str] = set()
        self.rich: list[JsonObject] = []
        self._inside: list[str] = []

    def read(self, model_id: str) -> str:
        """The text of a model and of all that is in it; empty if it is closed, hidden or inside itself."""
        self.visited.add(model_id)
        state = self._states.get(model_id)
        if state is None or model_id in self._inside or len(self._inside) > MOST_DEPTH or self._is_hidden(state):
            return ""
        self._inside.append(model_id)
        text = self._read_state(state, str(state.get("_model_name")))
        self._inside.pop()
        return text

    def _read_state(self, state: JsonObject, name: str) -> str:
        if name in _ROWS:
            return self._row(state)
        if name in _COLUMNS:
            return _stacked(self.read(child) for child in _references(state.get("children")))
        if name in _PAGES:
            return self._pages(state)
        if name == "StackModel":
            selected = state.get("selected_index")
            shown = _references(state.get("children"))[selected : selected + 1] if isinstance(selected, int) else []
            return _stacked(self.read(child) for child in shown)
        if name == "OutputModel":
            return _stacked(self._captured(output) for output in state.get("outputs") or ())
        if name == "ImageModel" and isinstance(state.get("value"), bytes) and state.get("format") in ("png", "jpeg"):
            data = base64.b64encode(state["value"]).decode()
            self.rich.append({f"image/{state['format']}": data, "text/plain": "[image]"})
            return ""
        return control_text(state) if name in CONTROLS else _unknown(state)

    def _is_hidden(self, state: JsonObject) -> bool:
        for reference in _references([state.get("layout")]):
            self.visited.add(reference)
            layout = self._states.get(reference) or {}
            return layout.get("display") == "none" or layout.get("visibility") == "hidden"
        return False

    def _row(self, state: JsonObject) -> str:
        """Children side by side, as far as each is one line. A bar with text beside it that has figures needs none."""
        children = _references(state.get("children"))
        names = [str((self._states.get(child) or {}).get("_model_name")) for child in children]
        parts = [self.read(child) for child in children]
        told = any(name in _TEXTS and _DIGIT.search(part) for name, part in zip(names, parts, strict=True))
        row = ""
        for child, name, part in zip(children, names, parts, strict=True):
            if name in _BARS and part and told:
                unknown = self._states[child].get("bar_style") == "info"  # tqdm's, where the total is not known
                row += "" if unknown else bar(self._states[child])
            elif part:
                row += f" {part}" if row else part
        return _stacked(parts) if any("\n" in part for part in parts) else row.strip()

    def _pages(self, state: JsonObject) -> str:
        """Tabs and folds: all of them, each under its title."""
        titles = state.get("titles") or ()
        pages = []
        for number, child in enumerate(_references(state.get("children"))):
            title = clean_text(str(titles[number])) if number < len(titles) else ""
            lines = self.read(child).splitlines()
            pages.append("\n".join([f"▸ {title or number + 1}", *(f"  {line}" for line in lines)]))
        return _stacked(pages)

    def _captured(self, output: JsonObject) -> str:
        """An output in an output widget: text as it is, errors without colours, widgets read, anything else kept."""
        kind = output.get("output_type")
        if kind == "stream":
            return clean_text(str(output.get("text", "")))
        if kind == "error":
            return traceback_text(output)
        data: JsonObject = output.get("data") or {}
        if (model_id := widget_in(data)) is not None and model_id in self._states:
            return self.read(model_id)
        rich = {name: value for name, value in data.items() if name != WIDGET_VIEW}
        if set(rich) - {"text/plain"}:
            self.rich.append(rich)
            return ""
        return bundle_text(rich) if rich else ""


def widget_in(data: JsonObject) -> str | None:
    """The id of the model that a MIME bundle is a view of."""
    view = data.get(WIDGET_VIEW)
    model_id = view.get("model_id") if isinstance(view, dict) else None
    return str(model_id) if model_id else None


def _references(values: Any) -> list[str]:
    """The ids in a list of references to models."""
    found = values if isinstance(values, list | tuple) else ()
    return [each.removeprefix(REFERENCE) for each in found if isinstance(each, str) and each.startswith(REFERENCE)]


def _stacked(parts: Iterable[str]) -> str:
    return "\n".join(part.rstrip("\n") for part in parts if part.strip())


def _unknown(state: JsonObject) -> str:
    """``Counter(value=4)``: the class and its simple traits."""
    identity = str(state.get("_anywidget_id") or state.get("_model_name") or "widget")
    name = identity.rpartition(".")[2].removesuffix("Model")
    traits = [
        f"{key}={value!r}"
        for key, value in state.items()
        if not _PLUMBING.match(key) and isinstance(value, str | int | float | bool)
    ]
    kept = [clean_text(trait) for trait in traits if len(trait) <= MOST_TRAIT_CHARS][:MOST_TRAITS]
    return f"{name}({', '.join(kept)}{', …' if len(kept) < len(traits) else ''})"
