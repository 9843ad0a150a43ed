"""What a single control says: a bar, a slider, a choice, a button. One function for each kind, from state to text.

``text`` looks up ``CONTROLS`` by the name of the model. Names and traits are those of the Jupyter widgets' controls 2.0
(ipywidgets 8). Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness_nb.outputs.mime import html_to_text
from harness_nb.outputs.terminal import clean_text
from harness_nb.outputs.widgets.bars import bar, bar_figures, plain
from harness_nb.types import JsonObject

MOST_OPTIONS = 8
"""Options of a choice that are named."""

HIDDEN = "········"


def _progress(state: JsonObject) -> str:
    return f"{bar(state)} {bar_figures(state)}"


def _html(state: JsonObject) -> str:
    return html_to_text(str(state.get("value", "")))


def _label(state: JsonObject) -> str:
    return clean_text(str(state.get("value", "")))


def _typed(state: JsonObject) -> str:
    value = state.get("value")
    return "(empty)" if value in (None, "") else clean_text(plain(value))


def _password(state: JsonObject) -> str:
    return HIDDEN if state.get("value") else "(empty)"


def _ranged(state: JsonObject) -> str:
    least, most = plain(state.get("min")), plain(state.get("max"))
    value = state.get("value")
    shown = " to ".join(map(plain, value)) if isinstance(value, list | tuple) else plain(value)
    return f"{shown} ({least} … {most})" if least or most else shown


def _checked(state: JsonObject) -> str:
    return "[x]" if state.get("value") else "[ ]"


def _valid(state: JsonObject) -> str:
    return "✓" if state.get("value") else f"✗ {state.get('readout', '')}".rstrip()


def _button(state: JsonObject) -> str:
    name = state.get("description") or state.get("tooltip") or state.get("icon") or "button"
    return f"[{clean_text(str(name))}]"


def _upload(state: JsonObject) -> str:
    files = state.get("value") or ()
    names = [str(file.get("name", "")) for file in files if isinstance(file, dict)]
    return f"{_button(state)} {', '.join(names) or 'no file'}"


def _choice(state: JsonObject) -> str:
    options = [clean_text(str(label)) for label in state.get("_options_labels") or ()]
    index = state.get("index")
    chosen = [options[i] for i in _indices(index) if 0 <= i < len(options)]
    named = options[:MOST_OPTIONS] + (["…"] if len(options) > MOST_OPTIONS else [])
    separator = " to " if "Range" in str(state.get("_model_name")) else ", "
    return f"{separator.join(chosen) or '(none)'} (of {', '.join(named)})"


def _play(state: JsonObject) -> str:
    return f"▶ {_ranged(state)}"


def _media(state: JsonObject) -> str:
    return f"[{str(state.get('_model_name', '')).removesuffix('Model').lower()}]"


CONTROLS: dict[str, Callable[[JsonObject], str]] = {
    **dict.fromkeys(["FloatProgressModel", "IntProgressModel"], _progress),
    **dict.fromkeys(["HTMLModel", "HTMLMathModel"], _html),
    "LabelModel": _label,
    **dict.fromkeys(
        ["TextModel", "TextareaModel", "ComboboxModel", "ColorPickerModel", "IntTextModel", "FloatTextModel"], _typed
    ),
    **dict.fromkeys(["DatePickerModel", "TimePickerModel", "DatetimeModel", "NaiveDatetimeModel"], _typed),
    "PasswordModel": _password,
    **dict.fromkeys(["IntSliderModel", "FloatSliderModel", "IntRangeSliderModel", "FloatRangeSliderModel"], _ranged),
    **dict.fromkeys(["BoundedIntTextModel", "BoundedFloatTextModel"], _ranged),
    "FloatLogSliderModel": _typed,
    **dict.fromkeys(["CheckboxModel", "ToggleButtonModel"], _checked),
    "ValidModel": _valid,
    "ButtonModel": _button,
    "FileUploadModel": _upload,
    **dict.fromkeys(
        ["DropdownModel", "RadioButtonsModel", "SelectModel", "SelectionSliderModel", "ToggleButtonsModel"], _choice
    ),
    **dict.fromkeys(["SelectMultipleModel", "SelectionRangeSliderModel"], _choice),
    "PlayModel": _play,
    **dict.fromkeys(["ImageModel", "AudioModel", "VideoModel"], _media),
}

BUTTONS = frozenset({"ButtonModel", "FileUploadModel"})
"""Controls whose description is part of what they say already."""

TICKED = frozenset({"CheckboxModel", "ToggleButtonModel"})
"""Controls whose description follows."""


def control_text(state: JsonObject) -> str:
    """What a control says, with its description.

    Raises:
        KeyError: if it is none of ``CONTROLS``.
    """
    name = str(state.get("_model_name"))
    said = CONTROLS[name](state)
    description = html_to_text(str(state.get("description") or "")) if name not in BUTTONS else ""
    if name in TICKED:
        said = f"{said} {description}".rstrip()
    elif description:
        said = f"{description.removesuffix(':')}: {said}"
    return f"{said} (disabled)" if state.get("disabled") else said


def _indices(index: Any) -> Sequence[int]:
    if isinstance(index, int):
        return (index,)
    return [each for each in index if isinstance(each, int)] if isinstance(index, list | tuple) else ()
