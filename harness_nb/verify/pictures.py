"""Whether two pictures look the same: means of blocks, compared.

Both pictures are put on white and reduced to ``GRID`` x ``GRID`` blocks by averaging; the distance is the largest
difference of a block in a colour channel, from 0 to 1. A line that takes another course, a bar of another height or a
word more changes some block by a tenth and more; the smoothing of edges, and text that moved by a pixel, change blocks
by hundredths. ``comparison`` asks; Pillow is imported only when bytes differ. No I/O.
"""

from __future__ import annotations

import base64
import binascii
import io
import warnings
from typing import Any

GRID = 32
THRESHOLD = 0.05
"""Distance up to which two pictures count as the same: about 13 of 255 levels in the block that differs most."""

SIZE_TOLERANCE = 0.02
"""Part by which width and height may differ: another version of a font moves a tight border by a pixel or two."""

MAX_PIXELS = 40_000_000
TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff")


def compare_pictures(recorded: str, now: str) -> str:
    """How two base64 pictures differ, in words; empty if they look the same."""
    if recorded.split() == now.split():
        return ""
    try:
        one, other = _decode(recorded), _decode(now)
    except ValueError as error:
        return f"a picture cannot be read ({error})"
    if any(abs(a - b) > max(SIZE_TOLERANCE * a, 1) for a, b in zip(one.size, other.size, strict=True)):
        return f"a picture of {_size(one)} pixels recorded, of {_size(other)} now"
    found = picture_distance(one, other)
    if found <= THRESHOLD:
        return ""
    return f"the picture looks different (distance {found:.2f}, up to {THRESHOLD:g} passes)"


def picture_distance(one: Any, other: Any) -> float:
    """The largest difference of a block's mean in a channel, from 0 to 1, of two RGB pictures (``PIL.Image``)."""
    from PIL import Image

    first, second = (image.resize((GRID, GRID), Image.Resampling.BOX).tobytes() for image in (one, other))
    return float(max(abs(a - b) for a, b in zip(first, second, strict=True))) / 255


def _decode(data: str) -> Any:
    """A picture in RGB on white.

    Raises:
        ValueError: if it is none that Pillow reads, or is too large.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(base64.b64decode(data))) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise ValueError(f"it has {opened.width} x {opened.height} pixels")
            image = opened.convert("RGBA")
    except (UnidentifiedImageError, OSError, SyntaxError, binascii.Error, Image.DecompressionBombError) as error:
        raise ValueError(str(error)[:80]) from None
    flat = Image.new("RGB", image.size, "white")
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _size(image: Any) -> str:
    return f"{image.width} x {image.height}"
