"""Outputs as a kernel would send them, in short."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

from harness_nb.ports import Output


def out(text: str) -> Output:
    return Output("stream", {"name": "stdout", "text": text})


def err(text: str) -> Output:
    return Output("stream", {"name": "stderr", "text": text})


def shown(data: dict[str, Any], display_id: str | None = None) -> Output:
    return Output("display_data", {"data": data, "metadata": {}}, display_id)


def updated(data: dict[str, Any], display_id: str) -> Output:
    return Output("update_display_data", {"data": data, "metadata": {}}, display_id)


def result(text: str, count: int = 1) -> Output:
    return Output("execute_result", {"data": {"text/plain": text}, "metadata": {}, "execution_count": count})


def raised(name: str = "ValueError", value: str = "bad") -> Output:
    return Output("error", {"ename": name, "evalue": value, "traceback": [f"{name}: {value}"]})


def cleared(wait: bool = False) -> Output:
    return Output("clear_output", {"wait": wait})


def figure(number: int, width: int = 4, height: int = 3) -> Output:
    """A valid PNG of one colour that differs by ``number``."""
    rows = b"".join(b"\0" + bytes((number % 256, number // 256, 0)) * width for _ in range(height))
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    )
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
    return shown({"image/png": png + "\n", "text/plain": f"<Figure size {width}x{height} with 1 Axes>"})
