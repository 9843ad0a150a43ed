"""Widgets of the tool kernel, as text: their models, followed by their comm messages, and what they say. Pure.

A saved notebook, a model and most front-ends cannot show a live widget; each display of one becomes a text that is
kept up to date, its twin. The kernel's router feeds ``WidgetModels`` and has ``WidgetViews`` translate the displays of
each cell.
"""

from harness_nb.outputs.widgets.models import COMM_KINDS, WidgetModels
from harness_nb.outputs.widgets.text import Twin, render_widget
from harness_nb.outputs.widgets.views import WidgetViews

__all__ = ["COMM_KINDS", "Twin", "WidgetModels", "WidgetViews", "render_widget"]
