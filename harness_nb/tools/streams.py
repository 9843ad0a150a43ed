"""stdout and stderr of the tool kernel: in the order they were written, each in the cell that it belongs to.

ipykernel keeps one buffer a stream and empties them one after the other, so that ``o0 e0 o1 e1`` arrives as all of
stdout and then all of stderr. Here both streams share one list of segments. Called by the launcher once ipykernel's
streams stand. It rests on private names of ipykernel (6.29 to 7.4); where they are missing, nothing is changed.
Standard library only.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import os
import sys
import threading
from typing import Any

from harness_nb.tools.recorder import Recorder


class Segments:
    """What both streams have yet to send: consecutive text of one stream and one cell is one segment."""

    def __init__(self, recorder: Recorder | None) -> None:
        self.lock = threading.RLock()
        self._recorder = recorder
        self._segments: list[tuple[Any, Any, list[str]]] = []

    def add(self, stream: Any, parent: Any, text: str) -> None:
        """Add text that ``stream`` wrote for the request ``parent`` (a frozen header). Called under the lock."""
        last = self._segments[-1] if self._segments else None
        if last is None or last[0] is not stream or last[1] != parent:
            self._segments.append((stream, parent, [text]))
        else:
            last[2].append(text)
        if self._recorder is not None:
            self._recorder.add(dict(parent).get("msg_id", ""), stream.name, text)

    def published(self, parent: dict[str, Any], count: int) -> None:
        """Note that ``count`` characters of that cell have been sent."""
        if self._recorder is not None:
            self._recorder.published(parent.get("msg_id", ""), count)

    def take(self) -> list[tuple[Any, Any, list[str]]]:
        """Everything, in order; afterwards there is nothing."""
        with self.lock:
            taken, self._segments = self._segments, []
        return taken

    def forget(self) -> None:
        """In a forked child: the parent sends what it has, the child must not send it again, nor wait for its lock."""
        self.lock = threading.RLock()
        self._recorder = None
        self._segments = []


class SegmentBuffers:
    """Stands in for ``OutStream._buffers``, of which ipykernel only asks ``buffers[parent].write(text)``."""

    def __init__(self, stream: Any, segments: Segments) -> None:
        self._stream, self._segments = stream, segments

    def __getitem__(self, parent: Any) -> SegmentBuffers.Writer:
        return SegmentBuffers.Writer(self._stream, self._segments, parent)

    class Writer:
        """Where the text of one stream and one cell goes."""

        def __init__(self, stream: Any, segments: Segments, parent: Any) -> None:
            self._where = (stream, parent)
            self._segments = segments

        def write(self, text: str) -> None:
            """Add the text at the end of all that is to be sent."""
            self._segments.add(*self._where, text)


def prepare_streams(shell: Any) -> None:
    """Order stdout and stderr, keep threads with the cell that started them, stop IPython from hoarding the text.

    ``shell`` is the kernel's ``ZMQInteractiveShell``.
    """
    streams: list[Any] = [sys.stdout, sys.stderr]
    for stream in streams:
        stream.close = stream.flush  # closed by one cell, it would be missing in every later one
    wanted = ("_buffers", "_buffer_lock", "_flush", "_parent_header", "pub_thread", "session")
    if all(hasattr(stream, name) for stream in streams for name in wanted):
        _share_segments(streams)
        _keep_threads_with_their_cell()
    if hasattr(shell, "_tee"):
        # IPython 9 keeps every printed piece in history_manager.outputs, for %notebook, which nobody calls here.
        shell._tee = lambda channel: contextlib.nullcontext()


def _share_segments(streams: list[Any]) -> None:
    path = os.environ.pop("HARNESS_NB_RECORDER", "")
    segments = Segments(Recorder(path) if path else None)

    def send() -> None:
        for stream in streams:
            stream._flush_pending = stream._subprocess_flush_pending = False
        for stream, parent, texts in segments.take():
            header, text = dict(parent), "".join(texts)
            _publish(stream, header, text)
            segments.published(header, len(text))

    def flush_buffers() -> list[Any]:
        """For a flush that was scheduled before the change: it still runs ipykernel's ``_flush``, which asks this."""
        send()
        return []

    for stream in streams:
        stream.flush()
        stream._buffers = SegmentBuffers(stream, segments)
        stream._buffer_lock = segments.lock
        stream._flush_buffers = flush_buffers
        stream._flush = send

    def after_fork() -> None:
        segments.forget()
        for stream in streams:
            stream._buffer_lock = segments.lock

    os.register_at_fork(after_in_child=after_fork)


def _publish(stream: Any, parent: dict[str, Any], text: str) -> None:
    """Send one stream message, through the hooks that ``capture`` and others have set, as ``OutStream._flush`` does.

    A lone surrogate cannot be sent, and would take everything behind it along; it becomes a question mark.
    """
    if not text:
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    stream.session.pid = os.getpid()
    message = stream.session.msg("stream", {"name": stream.name, "text": text}, parent=parent)
    for hook in getattr(stream, "_hooks", []):
        message = hook(message)
        if message is None:
            return
    stream.session.send(AtOnce(stream.pub_thread), message, ident=stream.topic)


class AtOnce:
    """Sends in ipykernel's I/O thread without queueing behind what waits for a flush.

    ipykernel queues the sending once more, so that ``print(flush=True)`` returns before the text is sent; code that
    then holds the interpreter, or crashes, would keep it.
    """

    def __init__(self, thread: Any) -> None:
        self._thread = thread

    def send_multipart(self, *args: Any, **arguments: Any) -> None:
        """Send now when called in the I/O thread, else have it sent."""
        here = getattr(self._thread, "thread", None) is threading.current_thread()
        send = getattr(self._thread, "_really_send", None) if here else None
        (send or self._thread.send_multipart)(*args, **arguments)


def _keep_threads_with_their_cell() -> None:
    """Run each new thread in a copy of its starter's context, where ipykernel keeps the request of the cell.

    Without this a thread's text lands in whatever cell runs when it prints. Work given to a pool goes with the cell
    that submits it, not with the one that made the pool.
    """
    start = threading.Thread.start
    submit = concurrent.futures.ThreadPoolExecutor.submit

    def start_in_context(self: threading.Thread) -> None:
        context, run = contextvars.copy_context(), self.run

        def run_in_context() -> None:
            self.__dict__.pop("run", None)
            context.run(run)

        self.run = run_in_context  # type: ignore[method-assign]
        start(self)

    def submit_in_context(self: Any, function: Any, /, *args: Any, **arguments: Any) -> Any:
        return submit(self, contextvars.copy_context().run, function, *args, **arguments)

    threading.Thread.start = start_in_context  # type: ignore[method-assign]
    concurrent.futures.ThreadPoolExecutor.submit = submit_in_context  # type: ignore[method-assign]
