"""Whole sessions under a storm of faults: some hundred turns of each adapter against ``llmock``, half of them hit.

The server samples errors and broken streams at high rates (with a fixed seed); waits between attempts take no time.
``pytest -s`` shows the report.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from llmock.chaos import ChaosSettings, StreamChaos
from llmock.scenarios import Reply, ToolCall
from stand_ins import Naps

from harness_nb import events as ev
from harness_nb.approval import DenyApprover
from harness_nb.kernel import FakeKernel
from harness_nb.models.anthropic_model import anthropic_model
from harness_nb.models.chat import chat_model
from harness_nb.models.responses import responses_model
from harness_nb.models.retry import LONGEST_WAIT, RETRIES
from harness_nb.ports import TextDelta, Withdrawn
from harness_nb.session import Session
from harness_nb.settings import Settings

ADAPTERS: dict[str, Any] = {"responses": responses_model, "chat": chat_model, "anthropic": anthropic_model}
TURNS = 100
"""Replies of each adapter."""

TASK = 10
"""Turns of one session: the last one finishes."""

ERRORS = {429: 0.10, 500: 0.06, 503: 0.06, 408: 0.02, 529: 0.03, 401: 0.01}
BREAKS = (("disconnect", 0.13), ("truncate", 0.13), ("malformed", 0.13))


@dataclass
class Report:
    """What came of one adapter."""

    kind: str
    requests: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    replies: int = 0
    kept: int = 0
    sessions: int = 0
    finished: int = 0
    gave_up: int = 0
    refused: int = 0

    @property
    def stopped(self) -> int:
        """Sessions that are not finished, and say so."""
        return self.sessions - self.finished

    def __str__(self) -> str:
        faults = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        return (
            f"{self.kind}: {self.replies} replies of {self.requests} requests; "
            f"{self.faults.total()} faults ({faults}); {self.retries} retries; "
            f"{self.kept} whole answers kept though their stream broke after them; "
            f"{self.gave_up} times given up and resumed; {self.sessions} sessions: {self.finished} finished, "
            f"{self.stopped} stopped by a rejected key"
        )


@pytest.fixture(scope="module")
def reports() -> Iterator[list[Report]]:
    made: list[Report] = []
    yield made
    print("\n".join(["", *map(str, made), f"total: {sum(report.replies for report in made)} replies"]))


def written(session: int, turn: int) -> Reply:
    """What the model says in this turn, marked where it begins and where it ends."""
    mark = f"({session}.{turn})"
    text = f"begin{mark} Every word of this reply has to arrive, or none of it. end{mark}"
    if turn == TASK:
        return Reply(text=text, tool_calls=(ToolCall("finish", {"summary": f"Task {session} is done."}),), times=None)
    calls = [ToolCall("python", {"code": f"step({session}, {turn}, {k})"}) for k in range(1 + turn % 3)]
    return Reply(text=text, tool_calls=tuple(calls), times=None)


class Storm:
    """The sessions of one adapter, one after the other, and what was seen of them."""

    def __init__(self, kind: str, llmock: Any, naps: Naps, workspace: Path) -> None:
        self.report = Report(kind)
        self.state, self.llmock, self.naps, self.workspace = llmock._server.state, llmock, naps, workspace
        self.url = llmock.base_url("anthropic" if kind == "anthropic" else "openai")
        self.state.chaos = ChaosSettings(error_rates=ERRORS)
        self.state.stream_chaos = replace(StreamChaos(), fault_rates=BREAKS, max_after_chunks=40)

    def say(self, session: int, turn: int) -> None:
        """From now on the server gives this reply, however often it is asked."""
        self.state.scenarios.clear()
        self.llmock.add(written(session, turn))
        if session == 2 and not any("stall" in (record.fault or "") for record in self.state.journal.records()):
            self.llmock.stall(after_chunks=4, seconds=4)

    async def session(self) -> None:
        """One task; where the adapter gives up in passing, it is resumed from disk in a session of its own."""
        number = self.report.sessions = self.report.sessions + 1
        turns, executed, name = 0, [], ""
        while True:
            kernel = FakeKernel(lambda source: f"ran {source}\n")
            model = ADAPTERS[self.report.kind]("gpt-4o", base_url=self.url, api_key="x", timeout=2, sleep=self.naps)
            settings = Settings.load(self.workspace, {"session": name} if name else {}, {})
            session = await Session.open(settings, DenyApprover(), model=model, kernel=kernel)
            self.say(number, turns + 1)
            shown = ""
            async for item in session.resume() if name else session.send(f"Task {number}."):
                if isinstance(item, Withdrawn):
                    shown = ""
                elif isinstance(item, TextDelta):
                    shown += item.text
                elif isinstance(item, ev.ModelReplied):
                    turns += 1
                    assert_whole(item, number, turns, shown)
                    shown = ""
                    self.say(number, turns + 1)
            assert shown == "", "what was shown of a lost reply is withdrawn"
            ending, name = session.ending, session.id
            await session.aclose()
            executed += [source for source in kernel.executed if source.startswith("step")]
            assert ending is not None
            if ending.reason == "finished" or "API key" in ending.text:
                break
            assert ending.reason == "model_error" and f"Given up after {RETRIES + 1} attempts" in ending.text
            self.report.gave_up += 1
        self.report.replies += turns
        self.report.finished += ending.reason == "finished"
        self.report.refused += ending.reason != "finished"
        assert (turns == TASK) is (ending.reason == "finished")
        self.assert_recorded(name, number, turns, ending.reason)
        done = [call for turn in range(1, turns + 1) for call in written(number, turn).tool_calls]
        assert executed == [call.arguments["code"] for call in done if call.name == "python"], "each call ran once"

    def assert_recorded(self, name: str, number: int, turns: int, reason: str) -> None:
        """On disk stand the whole replies, each once, and nothing of the lost ones."""
        folder = self.workspace / "harness_sessions"
        lines = (folder / name / "journal.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        replied = [event["message"] for event in events if event["type"] == "model_replied"]
        texts = [written(number, turn).text for turn in range(1, turns + 1)]
        assert [message["content"][0]["text"] for message in replied] == texts
        assert (events[-1]["type"], events[-1]["reason"]) == ("session_ended", reason)
        for record in (folder / name / "journal.jsonl", folder / f"{name}.ipynb"):
            begun, ended = (re.findall(rf"{word}(\(\d+\.\d+\))", record.read_text()) for word in ("begin", "end"))
            assert begun == ended, "half a reply was stored"
            assert set(begun) == {f"({number}.{turn})" for turn in range(1, turns + 1)}

    def assert_paid_once(self) -> None:
        """By the server's own record: no whole answer was asked for again, and each request is accounted for."""
        records, report = self.state.journal.records(wait=10), self.report
        report.requests, report.retries = len(records), len(self.naps.seconds)
        report.faults = Counter(record.fault.split("@")[0].split(":")[1] for record in records if record.fault)
        tries = [list(same) for _, same in groupby(records, lambda record: record.fingerprint)]
        again = [record for same in tries for record in same[:-1]]
        last = [same[-1] for same in tries]
        assert all(record.fault for record in again), "a whole answer was asked for again"
        assert all(record.status == 200 and record.completed for record in last if not record.fault)
        assert not any(record.status == 401 for record in again), "a rejected key was tried again"
        assert len(again) == report.retries, "there was a request that nobody waited before"
        for record, seconds in zip(again, self.naps.seconds, strict=True):
            assert (record.retry_after or 0.5) <= seconds <= LONGEST_WAIT
        assert report.refused == sum(record.status == 401 for record in last)
        report.kept = report.replies - sum(not record.fault for record in last)
        lost = [same for same in tries if same[-1].fault and same[-1].status != 401]
        assert len(lost) == report.gave_up + report.kept
        assert sum(len(same) <= RETRIES for same in lost) <= report.kept, "given up too early"
        assert max(map(len, tries)) == RETRIES + 1
        assert report.kept == 0 or report.kind == "chat", "only there figures follow a whole answer"


def assert_whole(replied: ev.ModelReplied, session: int, turn: int, shown: str) -> None:
    expected, message = written(session, turn), replied.message
    assert message.text == shown == expected.text
    assert [(call.name, call.arguments, call.malformed) for call in message.tool_calls] == [
        (call.name, call.arguments, None) for call in expected.tool_calls
    ]
    assert message.finish_reason == "tool_calls"
    assert len({call.call_id for call in message.tool_calls}) == len(message.tool_calls)


@pytest.mark.parametrize("kind", ADAPTERS)
async def test_sessions_under_faults_finish_or_stop_cleanly(
    kind: str, llmock: Any, naps: Naps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reports: list[Report]
) -> None:
    monkeypatch.setattr(random, "random", random.Random(f"storm {kind}").random)
    monkeypatch.setattr(random, "randint", random.Random(f"place {kind}").randint)
    storm = Storm(kind, llmock, naps, tmp_path)
    while storm.report.replies < TURNS:
        await storm.session()
    storm.assert_paid_once()
    report = storm.report
    reports.append(report)
    assert report.finished > report.stopped
    assert {"disconnect", "truncate", "malformed", "stall", "429", "500", "503"} <= set(report.faults)
    assert report.faults.total() > report.requests / 3
