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
    assert list(published[0]) == [media_type], "the printed line is the only text, so that it is read once"


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("a.png", b"just text", "'a.png' is text, not a PNG, JPEG, GIF or WebP picture; read_file('a.png') shows it"),
        ("a.svg", b"<svg/>", "'a.svg' is text, not a PNG, JPEG, GIF or WebP picture; read_file('a.svg') shows it"),
        (
            "a.npz",
            b"PK\3\4\0",
            "'a.npz' is not a PNG, JPEG, GIF or WebP picture; load it with python: numpy.load('a.npz')",
        ),
        (
            "a.tif",
            b"II*\0",
            "'a.tif' is not a PNG, JPEG, GIF or WebP picture; if it is one of another kind, "
            "save it as PNG with python (PIL.Image.open) and view that file",
        ),
        ("b.png", b"\x89PNG\r\n\x1a\n\0", "'b.png' is a damaged picture: its header ends too early"),
        ("c.jpg", b"\xff\xd8\xff", "'c.jpg' is a damaged picture: its header ends too early"),
        ("d.png", b"", "'d.png' is empty"),
    ],
)
def test_what_is_no_picture_is_refused(folder: Path, name: str, data: bytes, told: str) -> None:
    (folder / name).write_bytes(data)
    with pytest.raises(ValueError) as caught:
        images.view_image(name)
    assert str(caught.value) == told


def test_a_huge_or_missing_picture_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2000))
    monkeypatch.setattr(images, "IMAGE_BYTES", 1000)
    with pytest.raises(ValueError) as huge:
        images.view_image("plot.png")
    assert str(huge.value) == "'plot.png' has 2,008 bytes; make a smaller copy with Pillow and view that one"
    with pytest.raises(FileNotFoundError) as missing:
        images.view_image("plots.png")
    assert str(missing.value) == "there is no file 'plots.png'; near names: plot.png"
