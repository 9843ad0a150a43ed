"""A page as text for a model: HTML as Markdown without what a reader would not see; other text as it is."""

from __future__ import annotations

import re

from harness_nb.outputs.mime import html_to_text

TEXT_TYPES = re.compile(
    r"(text/.*|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-ndjson|sql|rtf|x-sh|x-ipynb.*))\Z"
)
_HTML = ("text/html", "application/xhtml+xml")
_UNSEEN = ("script", "style", "template", "svg", "iframe", "object", "embed", "head", "dialog", "canvas")
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d]*[1-9])", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")


def is_text(media_type: str) -> bool:
    """Whether a server says that it gives text."""
    return bool(TEXT_TYPES.match(media_type))


def page_text(body: bytes, media_type: str, charset: str | None) -> str:
    """The text of a page. ``charset`` is what the server says; what cannot be decoded is replaced."""
    if media_type in _HTML:
        return _markdown(body, charset)
    try:
        return body.decode(charset or "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def _markdown(body: bytes, charset: str | None) -> str:
    from bs4 import BeautifulSoup, Comment
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(body, "html.parser", from_encoding=charset)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for tag in soup.find_all(True):
        if tag.decomposed:
            continue
        hidden = tag.has_attr("hidden") or tag.get("aria-hidden") == "true" or _HIDING.search(str(tag.get("style", "")))
        if tag.name in _UNSEEN or hidden:
            tag.decompose()
    try:
        converter = MarkdownConverter(heading_style="ATX", bullets="-", strip=["img"])
        text = converter.convert_soup(soup.find("main") or soup)
    except RecursionError:  # nested more deeply than any page that is meant to be read
        text = html_to_text(body.decode(soup.original_encoding or "utf-8", "replace"))
    text = _BLANK_LINES.sub("\n\n", text).strip()
    return f"{title}\n\n{text}" if title and title not in text[:500] else text
