"""``view_image``: show a picture file as a real output of the cell, so that model and person both see it.

The file's own first bytes say what it is; its name is not trusted. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import base64
import builtins
import struct
from pathlib import Path
from typing import Any

from harness_nb.tools.entries import existing_file
from harness_nb.tools.formats import no_picture
from harness_nb.tools.workspace import brief, counted, plainly, quoted, shown

IMAGE_BYTES = 20_000_000


def view_image(path: str) -> None:
    """Show a PNG, JPEG, GIF or WebP file, with its size.

    Raises:
        FileNotFoundError, IsADirectoryError, PermissionError, ValueError: with a sentence that says what to do.
    """
    target = existing_file(path)
    with plainly(target, "read"):
        data = _checked(target)
        media_type, width, height = _describe(data, target)
    print(f"{shown(target)}: {media_type[6:].upper()}, {width} x {height} pixels, {counted(len(data), 'byte')}")
    _publish({media_type: base64.b64encode(data).decode("ascii")})


def _checked(target: Path) -> bytes:
    size = target.stat().st_size
    if size > IMAGE_BYTES:
        name = quoted(shown(target))
        raise brief(ValueError(f"{name} has {size:,} bytes; make a smaller copy with Pillow and view that one"))
    return target.read_bytes()


def _describe(data: bytes, target: Path) -> tuple[str, int, int]:
    """Media type, width and height in pixels, by the headers that the formats specify."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return ("image/png", *struct.unpack(">II", data[16:24]))
        if data[:6] in (b"GIF87a", b"GIF89a"):
            return ("image/gif", *struct.unpack("<HH", data[6:10]))
        if data.startswith(b"\xff\xd8"):
            return ("image/jpeg", *_jpeg_size(data))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return ("image/webp", *_webp_size(data))
    except (struct.error, IndexError):
        raise brief(ValueError(f"{quoted(shown(target))} is a damaged picture: its header ends too early")) from None
    raise no_picture(target)


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Walk the segments to the frame header (markers C0 to CF without C4, C8 and CC)."""
    position = 2
    while True:
        while data[position] != 0xFF:
            position += 1
        while data[position] == 0xFF:
            position += 1
        marker, position = data[position], position + 1
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[position + 3 : position + 7])
            return width, height
        if marker not in (0x01, *range(0xD0, 0xD9)):
            (length,) = struct.unpack(">H", data[position : position + 2])
            position += length


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _publish(data: dict[str, Any]) -> None:
    get_ipython = getattr(builtins, "get_ipython", None)
    if get_ipython is not None:
        get_ipython().display_pub.publish(data=data, metadata={})
