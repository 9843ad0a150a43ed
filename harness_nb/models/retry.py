"""The one owner of retries. Adapters make single attempts; whether and when another one follows is decided here.

All adapters (``responses``, ``chat``, ``scripted``) call ``stream_with_retries``; the retries of the provider's own
client are off. Must not import a provider's library.

What is tried again: ``TransientModelError`` only (408, 409, 429 without a quota code, 5xx, lost connections, timeouts,
cut or broken streams), at most four times, with exponential back-off and jitter, or after the time that the provider
asks for. A provider that asks for more than a minute is not waited for. Quota, authentication, refusal, overflow and
bad requests are never tried again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from harness_nb.errors import ModelError, TransientModelError
from harness_nb.ports import Delta, Withdrawn
from harness_nb.types import Message

RETRIES = 4
"""Attempts after the first one."""

LONGEST_WAIT = 60.0
"""Seconds. A provider that asks to wait longer is given up on, with its words."""

Attempt = Callable[[], AsyncGenerator[Delta | Message]]
Sleep = Callable[[float], Awaitable[None]]
T = TypeVar("T")

_BACK_OFF = wait_exponential_jitter(initial=1, max=20, jitter=1)


async def stream_with_retries(attempt: Attempt, sleep: Sleep = asyncio.sleep) -> AsyncGenerator[Delta | Message]:
    """Yield what ``attempt`` yields; where it fails in passing, withdraw that, wait and call it again.

    ``attempt`` makes one request: deltas, then exactly one ``Message``, or a ``ModelError``. ``sleep`` takes seconds.
    A ``Withdrawn`` stands before each further attempt, and before the error when deltas of a lost attempt were shown.

    Raises:
        ModelError: the last failure, when no attempt is left or another one cannot help.
    """
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(seconds)

    failure: ModelError | None = None
    attempts, shown = 0, False
    retrying = AsyncRetrying(
        sleep=note,
        stop=stop_after_attempt(1 + RETRIES),
        wait=_pause,
        retry=retry_if_exception(_may_pass),
        reraise=True,
    )
    try:
        async for trial in retrying:
            if failure:
                yield Withdrawn(f"{failure} Trying again in {pauses[-1]:.1f} s (attempt {attempts + 1}).")
                await sleep(pauses[-1])
            attempts, shown = attempts + 1, False
            try:
                async with aclosing(attempt()) as items:
                    async for item in items:
                        shown |= not isinstance(item, Message)
                        yield item
                return
            except ModelError as error:
                failure = error
                with trial:  # hands the failure to tenacity, which waits or raises
                    raise
    except ModelError as error:
        if shown:
            yield Withdrawn(f"{error} The partial reply is dropped.")
        raise _final(error, attempts) from error


async def call_with_retries(attempt: Callable[[], Awaitable[T]], sleep: Sleep = asyncio.sleep) -> T:
    """What ``attempt`` gives, for requests of which nothing is shown: it is called again as above.

    Raises:
        ModelError: as ``stream_with_retries``.
    """
    retrying = AsyncRetrying(
        sleep=sleep,
        stop=stop_after_attempt(1 + RETRIES),
        wait=_pause,
        retry=retry_if_exception(_may_pass),
        reraise=True,
    )
    return await retrying(attempt)


def _may_pass(error: BaseException) -> bool:
    """Whether another attempt can help."""
    return isinstance(error, TransientModelError) and (error.retry_after or 0.0) <= LONGEST_WAIT


def _pause(state: RetryCallState) -> float:
    """Seconds to the next attempt: what the provider asks for (never less), else exponential back-off."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, ModelError) and error.retry_after:
        return error.retry_after * random.uniform(1.0, 1.1)
    return _BACK_OFF(state)


def _final(error: ModelError, attempts: int) -> ModelError:
    """The failure as it is told when nothing more is tried."""
    if not isinstance(error, TransientModelError):
        return error
    if not _may_pass(error):
        reason = f"It asks to wait {error.retry_after:.0f} s, longer than the {LONGEST_WAIT:.0f} s that are waited for."
    else:
        reason = f"Given up after {attempts} attempts."
    return TransientModelError(
        f"{error} {reason} Nothing is lost: go on with this session later.",
        code=error.code,
        status=error.status,
        retry_after=error.retry_after,
    )
