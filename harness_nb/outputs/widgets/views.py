"""The displays of widgets in one cell, each as its twin: a text that is updated while the widget changes.

The kernel's router has one ``WidgetViews`` translate the outputs of each execution, and asks it now and then for what
has changed. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from harness_nb.outputs.mime import WIDGET_VIEW
from harness_nb.outputs.widgets.models import WidgetModels
from harness_nb.outputs.widgets.text import Twin, render_widget, widget_in
from harness_nb.ports import Output
from harness_nb.types import JsonObject

MOST_VIEWS = 200
"""Displays of a cell that are kept up to date; the oldest are left as they are."""

NOTHING: JsonObject = {"text/plain": ""}


@dataclass
class _View:
    """A display of a widget. ``slots`` are the bundles shown below it, which its text cannot hold."""

    kind: str
    content: JsonObject
    display_id: str
    model_id: str
    twin: Twin
    revision: int
    slots: list[JsonObject] = field(default_factory=list)


class WidgetViews:
    """The displays of one execution."""

    def __init__(self, models: WidgetModels) -> None:
        self._models = models
        self._views: dict[str, _View] = {}
        self._seen = 0
        self._made = 0

    @property
    def stale(self) -> bool:
        """Whether something may have changed since ``update`` was called."""
        return bool(self._views) and self._models.revision > self._seen

    def show(self, output: Output) -> list[Output]:
        """An output of the cell as it is to be shown: a view of a widget becomes its twin, others stay as they are."""
        data: JsonObject = output.content.get("data") or {}
        if output.display_id is not None and output.kind == "update_display_data":
            self._views.pop(output.display_id, None)
        if WIDGET_VIEW not in data:
            return [output]
        rest = {name: value for name, value in data.items() if name != WIDGET_VIEW}
        model_id = widget_in(data)
        if model_id is None or model_id not in self._models.states or set(rest) - {"text/plain"}:
            return [replace(output, content={**output.content, "data": rest or {"text/plain": "[a closed widget]"}})]
        self._made += 1
        view = _View(
            kind=output.kind,
            content=output.content,
            display_id=output.display_id or f"widget-{model_id}-{self._made}",
            model_id=model_id,
            twin=render_widget(self._models, model_id),
            revision=self._models.revision,
        )
        self._views[view.display_id] = view
        if len(self._views) > MOST_VIEWS:
            del self._views[next(iter(self._views))]
        return [_drawn(view, output.kind), *_fill_slots(view)]

    def update(self) -> list[Output]:
        """What has changed of the widgets on display since the last call."""
        if not self.stale:
            return []
        self._seen = self._models.revision
        outputs = []
        for view in self._views.values():
            if not self._models.changed_since(view.twin.model_ids, view.revision):
                continue
            before, view.twin, view.revision = view.twin, render_widget(self._models, view.model_id), self._seen
            if view.twin.text != before.text:
                outputs.append(_drawn(view, "update_display_data"))
            outputs += _fill_slots(view)
        return outputs


def _drawn(view: _View, kind: str) -> Output:
    content = {**view.content, "data": view.twin.bundle}
    return Output(kind, content, view.display_id)  # type: ignore[arg-type]


def _fill_slots(view: _View) -> list[Output]:
    """Show the bundles that the text cannot hold below it, place by place."""
    outputs = []
    wanted = [*view.twin.rich, *[NOTHING] * (len(view.slots) - len(view.twin.rich))]
    for place, bundle in enumerate(wanted):
        display_id = f"{view.display_id}-{place}"
        if place == len(view.slots):
            view.slots.append(bundle)
            outputs.append(Output("display_data", {"data": bundle, "metadata": {}}, display_id))
        elif view.slots[place] != bundle:
            view.slots[place] = bundle
            outputs.append(Output("update_display_data", {"data": bundle, "metadata": {}}, display_id))
    return outputs
