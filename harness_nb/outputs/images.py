"""Images in outputs: their size, and a copy that is small enough for a model.

The firewall and ``result_content`` call it. Sizes are read from the file headers (PNG specification 11.2.2, GIF89a 18,
JPEG: ITU T.81 B.2.2, WebP: RFC 9649), so that Pillow is imported only when an image must really be converted.
"""

from __future__ import annotations

import base64
import binascii
import io
import struct
import warnings
from typing import Any

from harness_nb.outputs.bounds import Bounds
from harness_nb.types import ImagePart

RASTER_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_PASSED_ON = ("image/png", "image/jpeg")
_MAX_PIXELS = 40_000_000


def image_size(media_type: str, data: str) -> tuple[int, int] | None:
    """Width and height in pixels of the base64 image ``data``, or ``None`` when its header does not say."""
    try:
        raw = base64.b64decode(data[: 400_000 if media_type == "image/jpeg" else 64], validate=False)
    except (binascii.Error, ValueError):
        return None
    try:
        if raw.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack(">II", raw[16:24])
            return width, height
        if raw.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack("<HH", raw[6:10])
            return width, height
        if raw.startswith(b"\xff\xd8"):
            return _jpeg_size(raw)
        if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
            return _webp_size(raw)
    except (struct.error, IndexError):
        return None
    return None


def _jpeg_size(raw: bytes) -> tuple[int, int] | None:
    position = 2
    while position + 9 < len(raw) and raw[position] == 0xFF:
        marker = raw[position + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", raw[position + 5 : position + 9])
            return width, height
        (length,) = struct.unpack(">H", raw[position + 2 : position + 4])
        position += 2 + length
    return None


def _webp_size(raw: bytes) -> tuple[int, int]:
    kind = raw[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(raw[24:27], "little"), 1 + int.from_bytes(raw[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", raw[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", raw[26:30])
    return width & 0x3FFF, height & 0x3FFF


def describe_image(media_type: str, data: str) -> str:
    """``640x480 png``, or only the kind when the size is not known."""
    kind = media_type.removeprefix("image/").removesuffix("+xml")
    size = image_size(media_type, data)
    return f"{size[0]}x{size[1]} {kind}" if size else kind


def image_part(media_type: str, data: str, bounds: Bounds) -> ImagePart | None:
    """The image as a model may get it: PNG or JPEG, within the bounds; ``None`` when it cannot be read."""
    if media_type not in RASTER_TYPES:
        return None
    size = image_size(media_type, data)
    small = size is not None and max(size) <= bounds.model_image_pixels
    if small and media_type in _PASSED_ON and len(data) * 3 // 4 <= bounds.model_image_bytes:
        return ImagePart(media_type=media_type, data=data)
    if size is not None and size[0] * size[1] > _MAX_PIXELS:
        return None
    return _convert(data, bounds.model_image_pixels, bounds.model_image_bytes)


def shrink_image(media_type: str, data: str, bounds: Bounds) -> ImagePart | None:
    """An image that is too large for a cell, made smaller: at most 2,048 pixels and ``bounds.image_chars``."""
    size = image_size(media_type, data)
    if media_type not in RASTER_TYPES or (size is not None and size[0] * size[1] > _MAX_PIXELS):
        return None
    return _convert(data, 2048, bounds.image_chars * 3 // 4)


def _convert(data: str, pixels: int, max_bytes: int) -> ImagePart | None:
    from PIL import Image, UnidentifiedImageError

    warnings_are_fine = warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning)
    try:
        with warnings_are_fine, Image.open(io.BytesIO(base64.b64decode(data))) as opened:
            if opened.width * opened.height > _MAX_PIXELS:
                return None
            image = opened.convert("RGBA" if _has_transparency(opened) else "RGB")
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    image.thumbnail((pixels, pixels))
    encoded = _encode(image, "PNG", optimize=True)
    if len(encoded) <= max_bytes:
        return ImagePart(media_type="image/png", data=base64.b64encode(encoded).decode())
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    while True:
        for quality in (85, 60):
            encoded = _encode(flat, "JPEG", quality=quality)
            if len(encoded) <= max_bytes:
                return ImagePart(media_type="image/jpeg", data=base64.b64encode(encoded).decode())
        if max(flat.size) < 64:
            return None
        flat.thumbnail((flat.width * 2 // 3, flat.height * 2 // 3))


def _has_transparency(image: Any) -> bool:
    return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info


def _encode(image: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()
