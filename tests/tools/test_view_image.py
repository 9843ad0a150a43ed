"""view_image: what it recognises, by the file's own bytes."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from harness_nb.tools import images


@pytest.mark.parametrize(
    ("format", "media_type", "options"),
    [
        ("PNG", "image/png", {}),
        ("JPEG", "image/jpeg", {}),
        ("JPEG", "image/jpeg", {"progressive": True}),
        ("GIF", "image/gif", {}),
        ("WEBP", "image/webp", {}),
        ("WEBP", "image/webp", {"lossless": True}),
    ],
)
def test_an_image_is_shown_with_its_size(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    format: str,
    media_type: str,
    options: dict[str, Any],
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (123, 45), "red").save(buffer, format, **options)
    (folder / "plot.dat").write_bytes(buffer.getvalue())
    published: list[dict[str, str]] = []
    monkeypatch.setattr(images, "_publish", published.append)
    images.view_image("plot.dat")
    out = capsys.readouterr().out
    assert out == f"plot.dat: {format}, 123 x 45 pixels, {len(buffer.getvalue()):,} bytes\n"
    assert base64.b64decode(published[0][media_type]) == buffer.getvalue()
    assert published[0]["text/plain"] == out.strip()


def test_what_is_no_image_is_refused(folder: Path) -> None:
    (folder / "a.png").write_text("just text")
    (folder / "b.png").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (folder / "c.jpg").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(ValueError, match="not a PNG, JPEG, GIF or WebP"):
        images.view_image("a.png")
    for damaged in ("b.png", "c.jpg"):
        with pytest.raises(ValueError, match="damaged image"):
            images.view_image(damaged)
    with pytest.raises(FileNotFoundError, match=r"near names: a\.png"):
        images.view_image("aa.png")
