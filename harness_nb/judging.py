"""Asks the classifier about one call, and joins what it says with what the rules say. The loop's ``run_call`` uses it.

A classifier that fails in any way gives no verdict: then the call is asked about, and denied where nobody can be asked.
It must not import a provider, a kernel or the session.
"""

from __future__ import annotations

import asyncio

from harness_nb.errors import ModelError
from harness_nb.policy.judging import NoVerdictError, Thresholds, combine, follows_untrusted, needs_judgement
from harness_nb.policy.untrusted import untrusted_before
from harness_nb.ports import Judge, Question
from harness_nb.types import Decision, ToolCall, Usage
from harness_nb.work import Work

TIMEOUT = 20.0
"""Seconds that a judgement may take, further attempts included."""


async def judged(work: Work, call: ToolCall, source: str, decision: Decision) -> tuple[Decision, Usage]:
    """The decision on a call that the rules have decided as ``decision``, and what the classifier took.

    The same decision where there is no classifier, or where it need not be asked.
    """
    if work.judge is None or not needs_judgement(call, decision):
        return decision, Usage()
    talk = work.conversation
    question = Question(
        call=call,
        source=source,
        words=[talk.history[place].text for place in talk.prompts] if talk else [],
        workspace=work.tools.workspace,
        untrusted=bool(talk and (follows_untrusted(talk.history) or untrusted_before(talk.history))),
    )
    return await judge_call(work.judge, question, decision, work.thresholds, TIMEOUT)


async def judge_call(
    judge: Judge, question: Question, decision: Decision, thresholds: Thresholds, timeout: float = TIMEOUT
) -> tuple[Decision, Usage]:
    """The decision of rules and classifier on one call, and what it took. ``timeout`` is in seconds."""
    try:
        async with asyncio.timeout(timeout):
            judgement, usage = await judge.judge(question)
    except TimeoutError:
        return combine(decision, f"no answer of {judge.name} in {timeout:g} s", thresholds), Usage()
    except ModelError as error:
        taken = error.usage if isinstance(error, NoVerdictError) else None
        return combine(decision, str(error), thresholds), taken or Usage()
    except Exception as error:  # as with a rule that fails: nothing is allowed because of a defect
        why = f"{judge.name} failed: {type(error).__name__}: {error}"
        return combine(decision, why, thresholds), Usage()
    return combine(decision, judgement, thresholds), usage
