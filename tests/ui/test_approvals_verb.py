"""Approvals in the user's kernel: typed, refused where nobody is, answered later by ``%agent approve`` or ``deny``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from user_kernel import ask, execute, finish

from harness_nb import events as ev
from harness_nb.journal import read_journal

AGENT = "%%agent --kernel harness-tools --model scripted:script.json\nTidy"


def write_script(*commands: str) -> None:
    calls = [{"text": "", "calls": [{"name": "bash", "arguments": {"command": command}}]} for command in commands]
    Path("script.json").write_text(json.dumps([*calls, {"text": "Done."}]))
    Path("old").mkdir()


def record() -> list[ev.Event]:
    return list(read_journal(next(Path("harness_sessions").glob("*/journal.jsonl")))[0])


def test_a_typed_answer_allows_and_another_edits(client: Any) -> None:
    write_script("rm -r new", "rm -r old")
    message, question = ask(client, AGENT)
    assert question.startswith("Run this bash cell? [y/N")
    client.input("e echo kept")
    question = client.get_stdin_msg(timeout=60)["content"]["prompt"]
    assert question.startswith("Run this bash cell?")
    client.input("y")
    _, shown = finish(client, message)
    assert list(shown.values())[-1].startswith("✓ finished")
    assert not Path("old").exists()
    assert any("[The person changed the call to: bash" in str(event) for event in record())


def test_where_nobody_can_answer_it_is_denied_at_once_and_can_be_approved_later(client: Any) -> None:
    write_script(*["rm -r old"] * 5)
    reply, shown = execute(client, AGENT)
    assert list(shown.values())[-1].startswith("⊘ stopped: calls were denied in 3 replies in a row")
    answers = [event.approval for event in record() if isinstance(event, ev.ApprovalAnswered)]
    assert all(answer.by == "nobody" and "deletes folders" in answer.reason for answer in answers)
    assert Path("old").exists()
    _, shown = execute(client, "%agent approve 3")
    assert "Allowed once, if the model makes exactly this call again: bash rm -r old" in "".join(shown.values())
    assert Path("old").exists()
    reply, _ = execute(client, "%agent approve 3")
    assert "Approval 3 is over (allowed later)" in reply["evalue"]
    execute(client, "%%agent --kernel harness-tools\nGo on")
    decisions = [event.decision for event in record() if isinstance(event, ev.CallDecided)]
    assert [(decision.verdict, decision.policy) for decision in decisions[3:4]] == [("allow", "approved_before")]
    assert decisions[4].verdict == "ask"
    assert not Path("old").exists()


def test_a_late_no_tells_the_model(client: Any) -> None:
    write_script("rm -r old")
    execute(client, AGENT)
    execute(client, "%agent deny 1 use the bin")
    told = [event.text for event in record() if isinstance(event, ev.Nudged)]
    assert any("The person says no to this call: bash" in text and "use the bin" in text for text in told)


def test_what_is_not_there_is_said(client: Any) -> None:
    reply, _ = execute(client, "%agent approve")
    assert "none was asked for" in reply["evalue"]
    reply, _ = execute(client, "%agent approve 7")
    assert "There is no approval 7" in reply["evalue"]
