"""Made-up comm messages of a kernel with ipywidgets, and outputs of its cells."""

from __future__ import annotations

from typing import Any

from harness_nb.outputs.mime import WIDGET_VIEW
from harness_nb.outputs.widgets import WidgetModels, render_widget
from harness_nb.ports import Output


def opened(model_id: str, name: str, **state: Any) -> dict[str, Any]:
    """A model that was made."""
    data = {"state": {"_model_name": f"{name}Model", **state}, "buffer_paths": []}
    return {"msg_type": "comm_open", "content": {"comm_id": model_id, "target_name": "jupyter.widget", "data": data}}


def updated(model_id: str, **state: Any) -> dict[str, Any]:
    """A model whose state has changed."""
    data = {"method": "update", "state": state, "buffer_paths": []}
    return {"msg_type": "comm_msg", "content": {"comm_id": model_id, "data": data}}


def closed(model_id: str) -> dict[str, Any]:
    """A model that is no more."""
    return {"msg_type": "comm_close", "content": {"comm_id": model_id, "data": {}}}


def references(*model_ids: str) -> list[str]:
    return [f"IPY_MODEL_{model_id}" for model_id in model_ids]


def models_of(*messages: dict[str, Any]) -> WidgetModels:
    models = WidgetModels()
    for message in messages:
        models.take(message)
    return models


def said(model_id: str, *messages: dict[str, Any]) -> str:
    """The text of a model after these messages."""
    return render_widget(models_of(*messages), model_id).text


def view(model_id: str, kind: Any = "display_data", display_id: str | None = None, **data: Any) -> Output:
    """A display of a widget."""
    bundle = {"text/plain": "HBox(…)", WIDGET_VIEW: {"version_major": 2, "model_id": model_id}, **data}
    return Output(kind, {"data": bundle, "metadata": {}}, display_id)


def shown(outputs: list[Output]) -> list[tuple[str, str | None, Any]]:
    """Kind, display id and text of outputs."""
    return [(each.kind, each.display_id, each.content["data"].get("text/plain")) for each in outputs]


def tqdm(left: str, value: float, right: str, style: str = "", most: float = 20) -> list[dict[str, Any]]:
    """A bar as tqdm.notebook makes it."""
    return [
        opened("style", "ProgressStyle", bar_color=None),
        opened("layout", "Layout", visibility=None),
        opened("left", "HTML", value=left, description=""),
        opened("bar", "FloatProgress", value=value, min=0.0, max=most, bar_style=style, description=""),
        opened("right", "HTML", value=right, description=""),
        opened("box", "HBox", children=references("left", "bar", "right"), layout="IPY_MODEL_layout"),
    ]
