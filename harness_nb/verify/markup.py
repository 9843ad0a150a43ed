"""The text of an HTML output: what a person reads, cell by cell and line by line. ``comparison`` asks. Pure."""

from __future__ import annotations

from html.parser import HTMLParser

_SILENT = ("style", "script", "head", "title", "template")
_CELLS = ("td", "th")
_LINES = ("tr", "p", "div", "br", "li", "table", "caption", "pre", "h1", "h2", "h3", "h4", "h5", "h6")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent += 1
        elif tag == "img":
            self.pieces.append("".join(f"[img {value}]" for name, value in attrs if name == "src"))
        elif tag in _LINES:
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self._silent = max(self._silent - 1, 0)
        elif tag in _CELLS:
            self.pieces.append(" | ")
        elif tag in _LINES:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.pieces.append(data.replace("\n", " "))


def html_text(html: str) -> str:
    """The visible text of HTML: table cells parted by ``|``, blocks by line ends, blanks folded."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    lines = [" ".join(line.split()).strip("| ") for line in "".join(reader.pieces).split("\n")]
    return "\n".join(line for line in lines if line)


def looks_like_program(html: str) -> bool:
    """Whether what the HTML shows is drawn by a script, so that its text says little about it."""
    return "<script" in html.lower() or "<svg" in html.lower() or "<canvas" in html.lower()
