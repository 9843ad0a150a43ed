"""What a dead kernel had printed and not sent: the reading side of the flight recorder.

``started`` calls it once the death is known. The writing side, with the description of the file, is
``harness_nb/tools/recorder.py``, which runs in the kernel; a test holds the two together. Pure.
"""

from __future__ import annotations

import struct

STREAMS = ("stdout", "stderr")
HALF_BYTES = 131_072
ID = struct.Struct("<64s")
PUBLISHED = struct.Struct("<Q")
HALF = struct.Struct("<QI")
RECORD = struct.Struct("<BI")
HEADER_BYTES = ID.size + PUBLISHED.size


def unsent_text(memory: bytes, request: str, received: int) -> list[tuple[str, str]]:
    """Pieces (stream, text), in order, that were printed for ``request`` and that its client has not got.

    ``memory`` is the content of the file, ``received`` the number of characters that the client has. If it has more
    than was recorded (forked children print, too), what was never published is taken.
    """
    if len(memory) < HEADER_BYTES + 2 * HALF_BYTES:
        return []
    (written_for,) = ID.unpack_from(memory, 0)
    if written_for.rstrip(b"\0").decode("ascii", "replace") != request:
        return []
    (published,) = PUBLISHED.unpack_from(memory, ID.size)
    pieces = sorted(_pieces(memory, 0) + _pieces(memory, 1), key=lambda piece: piece[0])
    total = max((start + len(text) for start, _, text in pieces), default=0)
    first = received if received <= total else published
    unsent = [(stream, text[max(0, first - start) :]) for start, stream, text in pieces]
    return [(stream, text) for stream, text in unsent if text]


def _pieces(memory: bytes, half: int) -> list[tuple[int, str, str]]:
    """Offset in characters, stream and text of each record of one half."""
    at = HEADER_BYTES + half * HALF_BYTES
    offset, used = HALF.unpack_from(memory, at)
    position, found = HALF.size, []
    while position + RECORD.size <= min(used, HALF_BYTES):
        stream, length = RECORD.unpack_from(memory, at + position)
        position += RECORD.size
        text = memory[at + position : at + position + length].decode("utf-8", "surrogatepass")
        position += length
        found.append((offset, STREAMS[stream], text))
        offset += len(text)
    return found
