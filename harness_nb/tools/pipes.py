"""The two pipes of a running bash: read as output comes, decoded, and written to the cell's stdout and stderr.

Used by ``bash`` only. Standard library only; runs in the tool kernel.
"""

from __future__ import annotations

import codecs
import os
import selectors
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, Any

READ_BYTES = 65_536
POLL_SECONDS = 0.05
SIGNAL_SECONDS = 0.5
LEFT_SECONDS = 0.3


class Pipes:
    """Both pipes of one process, until each has ended or the process has.

    stdout and stderr are two pipes, so their order is that of arrival: exact unless both are written within the
    fraction of a millisecond that waking up takes.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._decoders: dict[str, Any] = {}
        self._last: Any = None
        self._exit: int | None = None
        for name in ("stdout", "stderr"):
            pipe: IO[bytes] = getattr(process, name)
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)
            self._decoders[name] = codecs.getincrementaldecoder("utf-8")("replace")
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._exit = os.pidfd_open(process.pid)
                self._selector.register(self._exit, selectors.EVENT_READ, "exit")

    @property
    def open(self) -> bool:
        """Whether a pipe has not ended: somebody still holds its other side."""
        return any(key.data != "exit" for key in self._selector.get_map().values())

    def relay_until_exit(self, seconds: float | None = None) -> bool:
        """Write what comes to ``sys.stdout`` and ``sys.stderr`` until the process has exited and its output is read.

        ``seconds`` bounds the wait. Returns whether the process has exited.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        while self._process.poll() is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            for key, _ in self._selector.select(self._wait(left)):
                if key.data != "exit":
                    self._read(key)
        self._read_what_is_left()
        for name, decoder in self._decoders.items():
            self._write(name, decoder.decode(b"", final=True))
        return True

    def relay_for(self, seconds: float) -> None:
        """Go on for ``seconds`` after bash has exited: short-lived children end, others close what they do not use."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready = [key for key, _ in self._selector.select(left) if key.data != "exit"] if self.open else []
            if not ready:
                time.sleep(min(left, 0.02))
            for key in ready:
                self._read(key)

    def _read_what_is_left(self) -> None:
        """Read what bash wrote before it exited; a background child that never stops writing must not hold the cell."""
        deadline = time.monotonic() + LEFT_SECONDS
        while self.open and time.monotonic() < deadline:
            ready = [key for key, _ in self._selector.select(0) if key.data != "exit"]
            if sum(self._read(key) for key in ready) == 0:
                return

    def _wait(self, left: float | None) -> float:
        """How long to sleep at most: without an exit notice the process is asked every 50 ms.

        With one it is twice a second all the same: a signal may be delivered to another thread of the process, and
        then it does not wake this one, which alone can act on it.
        """
        most = POLL_SECONDS if self._exit is None else SIGNAL_SECONDS
        return most if left is None else min(left, most)

    def _read(self, key: selectors.SelectorKey) -> bool:
        """Pass on one piece; false when there was none."""
        try:
            data = os.read(key.fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(key.fileobj)
            return False
        self._write(key.data, self._decoders[key.data].decode(data))
        return True

    def _write(self, name: str, text: str) -> None:
        if not text:
            return
        stream = getattr(sys, name)
        if self._last is not None and self._last is not stream:
            self._last.flush()
        self._last = stream
        stream.write(text)

    def discard(self) -> None:
        """Read and drop until both pipes have ended, then close them. Runs in a thread of its own."""
        if self._exit is not None:
            self._selector.unregister(self._exit)
        while self.open:
            for key, _ in self._selector.select():
                with suppress(BlockingIOError):
                    if not os.read(key.fd, READ_BYTES):
                        self._selector.unregister(key.fileobj)
        self.close()

    def close(self) -> None:
        """Close both pipes and the exit notice."""
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._exit is not None:
            os.close(self._exit)
            self._exit = None
