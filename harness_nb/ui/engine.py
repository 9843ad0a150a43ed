"""One thread with one event loop, in which sessions run beside the user's own cells.

The magics submit to it; they must never block it. The thread lives as long as the process: tool kernels are spawned
from it with a parent-death signal, which the system sends when the *thread* that spawned them ends. This module must
not import IPython or anything of ours.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")

TICK = 0.1
"""Seconds between two looks at work that is waited for."""

CLOSE_TIMEOUT = 10.0
"""Seconds that work gets to end in good order when the process exits."""


class Handle(Generic[T]):
    """A coroutine that runs in the engine, seen from another thread.

    Unlike a future of ``asyncio.run_coroutine_threadsafe`` it is done only when the task has really ended, clean-up
    after a cancellation included.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> None:
        self._loop = loop
        self._outcome: Future[T] = Future()
        self._task: asyncio.Task[T] | None = None
        loop.call_soon_threadsafe(self._start, coroutine)

    def done(self) -> bool:
        """Whether the task has ended, in whatever way."""
        return self._outcome.done()

    def wait(self, timeout: float | None = None) -> bool:
        """Block the calling thread until the end or for ``timeout`` seconds; return ``done()``."""
        with suppress(TimeoutError, CancelledError, Exception):
            self._outcome.exception(timeout)
        return self.done()

    def cancel(self) -> None:
        """Ask the task to end; it may take its time to clean up, so wait for ``done()``."""
        if not self.done():
            self._loop.call_soon_threadsafe(self._cancel)

    def result(self) -> T:
        """What the coroutine returned.

        Raises:
            asyncio.CancelledError: if it was cancelled.
            Exception: whatever the coroutine raised.
        """
        try:
            return self._outcome.result()
        except CancelledError:
            raise asyncio.CancelledError from None

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._finish)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._outcome.cancel()
            self._outcome.set_running_or_notify_cancel()
        elif error := task.exception():
            self._outcome.set_exception(error)
        else:
            self._outcome.set_result(task.result())


class Engine:
    """A daemon thread with its own event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="harness-nb engine", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether work can be submitted."""
        return self._thread.is_alive() and not self._closed

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Handle[T]:
        """Run a coroutine in the engine's loop; safe from any thread."""
        return Handle(self.loop, coroutine)

    def before_close(self, closer: Callable[[], Awaitable[None]]) -> None:
        """Have ``closer`` awaited when the engine closes, after running work was cancelled."""
        self._closers.append(closer)

    def close(self, timeout: float = CLOSE_TIMEOUT) -> None:
        """Cancel what runs, await the closers, end the thread; give up after ``timeout`` seconds."""
        if not self.alive:
            return
        self._closed = True
        self.submit(self._wind_down()).wait(timeout)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(1.0)

    async def _wind_down(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for closer in self._closers:
            with suppress(Exception):
                await closer()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()


_engines: dict[int, Engine] = {}


def engine() -> Engine:
    """The engine of this process, started at the first use; a forked child gets its own."""
    found = _engines.get(os.getpid())
    if found is None or not found.alive:
        found = _engines[os.getpid()] = Engine()
        atexit.register(_close, os.getpid())
    return found


def in_engine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the engine and wait for it; an interrupt cancels it.

    Raises:
        KeyboardInterrupt: if it was interrupted or cancelled.
        Exception: whatever the coroutine raised.
    """
    handle = engine().submit(coroutine)
    try:
        while not handle.wait(TICK):
            pass
    except KeyboardInterrupt:
        handle.cancel()
        handle.wait(CLOSE_TIMEOUT)
        raise
    try:
        return handle.result()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _close(pid: int) -> None:
    if pid == os.getpid() and pid in _engines:
        _engines.pop(pid).close()
