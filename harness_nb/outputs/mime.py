"""Rich outputs: what of a MIME bundle goes into a notebook cell, and what a model reads of it.

The firewall calls it. A cleaned bundle is valid nbformat 4.5 whatever the kernel sent: text as one string, JSON without
NaN or surrogates, nothing larger than the bounds. It imports only its neighbours in ``outputs``.
"""

from __future__ import annotations

import base64
import json
import math
import re
from html.parser import HTMLParser
from typing import Any

from harness_nb.outputs.bounds import Bounds, format_bytes, head_and_tail
from harness_nb.outputs.images import RASTER_TYPES, describe_image, shrink_image
from harness_nb.outputs.terminal import clean_text
from harness_nb.types import JsonObject

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_JSON_TYPE = re.compile(r"application/(.*\+)?json\Z")
_PLACEHOLDER = re.compile(r"<(IPython\.core\.display\.\w+ object|Figure size .*|PIL\..*|.* at 0x[0-9a-fA-F]+)>\Z", re.S)
_ARTIST = re.compile(
    r"<(?:matplotlib|mpl_toolkits|seaborn)\.[\w.]+(?: object)? at 0x[0-9a-fA-F]+>"
    r"|<\w*Axes\w*: (?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^<>'\"])*>"
    r"|<\w*Container object of \d+ artists>"
    r"|<Figure size \S+ with \d+ Axes>"
    r"|Text\([^()'\"]*(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\)"
)
_AROUND_ARTISTS = re.compile(r"(?:array|dtype=object|\.\.\.|[\s\[\](),])*")
_TEXT_TYPES = ("text/markdown", "text/latex")
_BINARY_TYPES = (*RASTER_TYPES, "application/pdf")
_READ_HTML = 500_000
_READ_REPR = 20_000
_SURROGATE = re.compile("[\ud800-\udfff\0]")


def clean_json(value: Any) -> Any:
    """``value`` as strict JSON: NaN and infinities as strings, keys as strings, no surrogates, bytes as base64."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {replace_surrogates(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return replace_surrogates(str(value))


def replace_surrogates(text: str) -> str:
    """``text`` with lone surrogates and NUL, which UTF-8 files and browsers do not take, as U+FFFD."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def clean_bundle(data: JsonObject, bounds: Bounds, path: str | None = None) -> JsonObject:
    """The bundle for a notebook cell: ``text/plain`` and the rich forms that are within the bounds.

    A widget view is dropped, since a saved notebook cannot show it: its text form stays. A form that is too
    large is replaced by the text form with a sentence. ``path`` is where the whole text is, if anywhere.
    """
    cleaned: JsonObject = {}
    remarks = []
    for key, value in data.items():
        kind = replace_surrogates(str(key))
        if kind == WIDGET_VIEW:
            continue
        form, remark = _clean_form(kind, _as_json_or_text(kind, value), bounds, path)
        if form is not None:
            cleaned[form[0]] = form[1]
        if remark:
            remarks.append(remark)
    if not cleaned and not remarks:
        remarks.append("[a widget, not shown here]" if WIDGET_VIEW in data else "[an empty display]")
    if remarks:
        cleaned["text/plain"] = "\n".join(filter(None, (cleaned.get("text/plain", ""), *remarks)))
    return cleaned


def _as_json_or_text(kind: str, value: Any) -> Any:
    if _JSON_TYPE.match(kind):
        return clean_json(value)
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        value = "".join(value)
    if not isinstance(value, str):
        cleaned = clean_json(value)
        value = cleaned if isinstance(cleaned, str) else json.dumps(cleaned, ensure_ascii=False)
    return "".join(value.split()) if kind in _BINARY_TYPES else value


def _clean_form(kind: str, value: Any, bounds: Bounds, path: str | None) -> tuple[tuple[str, Any] | None, str]:
    """One form of a bundle as (type, value), and a remark when it could not be kept as it was."""
    if kind == "text/plain":
        text = clean_text(value, colors=True)
        return (kind, head_and_tail(text, bounds.cell_chars, bounds.cell_lines, path)), ""
    if kind in RASTER_TYPES:
        if len(value) <= bounds.image_chars:
            return (kind, value), ""
        smaller = shrink_image(kind, value, bounds)
        if smaller is not None:
            remark = f"[made smaller: the image was {describe_image(kind, value)}]"
            return (smaller.media_type, smaller.data), remark
        return None, f"[image left out: {describe_image(kind, value)}, {format_bytes(len(value) * 3 // 4)}]"
    size = len(value) if isinstance(value, str) else len(json.dumps(value, ensure_ascii=False))
    if size > (bounds.html_chars if kind == "text/html" else bounds.data_chars):
        return None, f"[the {kind} form is left out: {format_bytes(size)}]"
    return (kind, replace_surrogates(value) if isinstance(value, str) else value), ""


def exceeds_cell(text: str, bounds: Bounds) -> bool:
    """Whether a cell that keeps ``text`` leaves some of it out."""
    return len(text) > bounds.cell_chars or text.count("\n") >= bounds.cell_lines


def bundle_images(data: JsonObject) -> tuple[str, str] | None:
    """Type and base64 data of the bundle's raster image, if it has one."""
    return next(((kind, data[kind]) for kind in RASTER_TYPES if isinstance(data.get(kind), str)), None)


def bundle_text(data: JsonObject) -> str:
    """What a model reads of a bundle, unbounded; empty for a raster image, which it gets as an image.

    Markdown and LaTeX as they are written, then the plain text; where that says nothing, JSON or the text of the HTML.
    """
    cleaned = {key: _as_json_or_text(key, value) for key, value in data.items() if key != WIDGET_VIEW}
    plain = clean_text(cleaned.get("text/plain", "")).strip("\n")
    telling = bool(plain) and not _PLACEHOLDER.match(plain)
    if bundle_images(cleaned) is not None:
        return plain if telling else ""
    for kind in _TEXT_TYPES:
        if cleaned.get(kind):
            return clean_text(cleaned[kind]).strip("\n")
    if telling:
        return plain
    for kind, value in cleaned.items():
        if kind == "application/json":
            return json.dumps(value, ensure_ascii=False)
    if cleaned.get("text/html"):
        return html_to_text(cleaned["text/html"][:_READ_HTML]) or plain
    others = [key for key in cleaned if key != "text/plain"]
    if others:
        return f"[{others[0]}, shown in the notebook only]"
    return plain if "text/plain" in cleaned else "[a widget, shown in the notebook only]"


class _TextOfHtml(HTMLParser):
    _BREAKS = frozenset({"p", "div", "br", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "pre", "ul", "ol"})
    _HIDDEN = frozenset({"script", "style", "head", "title", "template"})

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._HIDDEN:
            self._hidden += 1
        elif tag in self._BREAKS:
            self.pieces.append("\n")
        elif tag in ("td", "th"):
            self.pieces.append("  ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._HIDDEN:
            self._hidden = max(self._hidden - 1, 0)

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.pieces.append(re.sub(r"\s+", " ", data))


def is_artist_repr(text: str) -> bool:
    """Whether ``text`` is nothing but what matplotlib's objects call themselves: ``Text(0.5, 1.0, 'Loss')``.

    It is the value of a plotting cell's last line, which says less than the plot. Forms as of matplotlib 3.11.
    """
    rest, count = _ARTIST.subn("", text[:_READ_REPR])
    return count > 0 and len(text) <= _READ_REPR and _AROUND_ARTISTS.fullmatch(rest) is not None


def html_to_text(html: str) -> str:
    """The visible text of ``html``, a line for each block or table row. Rough: it is for reading, not for show."""
    parser = _TextOfHtml()
    parser.feed(html)
    parser.close()
    lines = (line.strip() for line in "".join(parser.pieces).split("\n"))
    return clean_text("\n".join(line for line in lines if line))
