"""Images: their size from the header, and copies small enough for a model."""

from __future__ import annotations

import base64
import io
import random

import pytest
from PIL import Image

from harness_nb.outputs.bounds import Bounds
from harness_nb.outputs.images import describe_image, image_part, image_size, shrink_image


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB", noise: bool = False) -> str:
    image = Image.new(mode, (width, height))
    if noise:
        image.frombytes(random.Random(1).randbytes(len(image.tobytes())))
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def opened(data: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(data)))


def test_the_size_of_a_webp_image_is_read_in_all_its_forms() -> None:
    for options in ({}, {"lossless": True}, {"exif": b"Exif\0\0"}):
        buffer = io.BytesIO()
        Image.new("RGB", (123, 45), "red").save(buffer, "WEBP", **options)
        data = base64.b64encode(buffer.getvalue()).decode()
        assert image_size("image/webp", data) == (123, 45)
    assert image_size("image/webp", base64.b64encode(b"RIFF....WEBPVP8 ").decode()) is None


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF"])
def test_the_size_is_read_from_the_header(kind: str) -> None:
    media_type = f"image/{kind.lower()}"
    assert image_size(media_type, picture(64, 48, kind)) == (64, 48)
    assert describe_image(media_type, picture(64, 48, kind)) == f"64x48 {kind.lower()}"


@pytest.mark.parametrize("data", ["", "not base64!", base64.b64encode(b"\x89PNG\r\n\x1a\n").decode(), "/9j/"])
def test_a_broken_header_gives_no_size(data: str) -> None:
    assert image_size("image/png", data) is None
    assert describe_image("image/png", data) == "png"


def test_a_small_png_or_jpeg_is_passed_on_untouched() -> None:
    for kind in ("PNG", "JPEG"):
        data = picture(640, 480, kind)
        part = image_part(f"image/{kind.lower()}", data, Bounds())
        assert part is not None
        assert part.data == data


def test_a_large_image_is_scaled_down() -> None:
    part = image_part("image/png", picture(3000, 1500), Bounds())
    assert part is not None
    assert (part.media_type, opened(part.data).size) == ("image/png", (1024, 512))


@pytest.mark.parametrize(("kind", "mode"), [("GIF", "P"), ("WEBP", "RGBA"), ("PNG", "RGBA")])
def test_other_kinds_become_png(kind: str, mode: str) -> None:
    part = image_part(f"image/{kind.lower()}", picture(2000, 10, kind, mode), Bounds())
    assert part is not None
    assert (part.media_type, opened(part.data).format) == ("image/png", "PNG")


def test_too_many_bytes_become_a_jpeg_that_fits() -> None:
    bounds = Bounds(model_image_bytes=60_000)
    part = image_part("image/png", picture(900, 900, noise=True, mode="RGBA"), bounds)
    assert part is not None
    assert part.media_type == "image/jpeg"
    assert len(base64.b64decode(part.data)) <= 60_000


@pytest.mark.parametrize("data", ["", "AAAA", "%%%", base64.b64encode(b"\x89PNG\r\n\x1a\nrubbish").decode()])
def test_what_is_no_image_is_none(data: str) -> None:
    assert image_part("image/png", data, Bounds()) is None


def test_a_decompression_bomb_is_not_opened() -> None:
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (100_000).to_bytes(4, "big") * 2
    assert image_part("image/png", base64.b64encode(header).decode(), Bounds()) is None


def test_an_svg_is_not_for_models() -> None:
    assert image_part("image/svg+xml", "PHN2Zy8+", Bounds()) is None
    assert describe_image("image/svg+xml", "<svg/>") == "svg"


def test_an_image_too_large_for_a_cell_is_made_smaller() -> None:
    part = shrink_image("image/png", picture(2500, 100, noise=True), Bounds(image_chars=400_000))
    assert part is not None
    assert len(part.data) <= 400_000
    assert max(opened(part.data).size) <= 2048
