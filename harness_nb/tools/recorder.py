"""The flight recorder: the last text that tool code printed, readable by others after the kernel has died.

Printed text waits up to 0.2 s in the kernel before it is sent; a SIGKILL, a crash or a lack of memory would take it
along. So each piece is also written to a small shared file. ``streams`` uses it in the tool kernel; the reading side is
``harness_nb/kernel/recording.py``. Standard library only.

The file: the id of the request that is answered (64 bytes), characters published (u64), then two halves that are filled
in turn, each with the offset in characters of its first record (u64), the bytes used (u32) and records of a stream's
number (u8), a length (u32) and UTF-8 text.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

STREAMS = ("stdout", "stderr")
HALF_BYTES = 131_072
KEPT_CHARACTERS = 24_000
ID = struct.Struct("<64s")
PUBLISHED = struct.Struct("<Q")
HALF = struct.Struct("<QI")
RECORD = struct.Struct("<BI")
HEADER_BYTES = ID.size + PUBLISHED.size
FILE_BYTES = HEADER_BYTES + 2 * HALF_BYTES


class Recorder:
    """Writes to an existing file of mode 0600. Not for forked children: they must drop it."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            file.truncate(FILE_BYTES)
            self._memory = mmap.mmap(file.fileno(), FILE_BYTES)
        self._request = ""
        self._total = 0
        self._half = 0
        self._used = HALF.size
        self._published = 0

    def add(self, request: str, stream: str, text: str) -> None:
        """Record ``text`` that ``stream`` (stdout or stderr) got for the request of that message id."""
        if request != self._request:
            self._begin(request)
        kept = text[-KEPT_CHARACTERS:]
        data = kept.encode("utf-8", "surrogatepass")
        start = self._total + len(text) - len(kept)
        if len(kept) < len(text) or self._used + RECORD.size + len(data) > HALF_BYTES:
            self._open_half(1 - self._half, start)
        at = HEADER_BYTES + self._half * HALF_BYTES
        RECORD.pack_into(self._memory, at + self._used, STREAMS.index(stream), len(data))
        first = at + self._used + RECORD.size
        self._memory[first : first + len(data)] = data
        self._used += RECORD.size + len(data)
        struct.pack_into("<I", self._memory, at + PUBLISHED.size, self._used)
        self._total += len(text)

    def published(self, request: str, count: int) -> None:
        """Note that ``count`` characters more of that request have been sent."""
        if request == self._request:
            self._published += count
            PUBLISHED.pack_into(self._memory, ID.size, self._published)

    def _begin(self, request: str) -> None:
        self._request, self._total, self._published = request, 0, 0
        ID.pack_into(self._memory, 0, request.encode()[: ID.size])
        PUBLISHED.pack_into(self._memory, ID.size, 0)
        self._open_half(1, 0)
        self._open_half(0, 0)

    def _open_half(self, half: int, base: int) -> None:
        self._half, self._used = half, HALF.size
        HALF.pack_into(self._memory, HEADER_BYTES + half * HALF_BYTES, base, HALF.size)
