"""``harness-nb audit``: every call with decision, reason, approval and effect, from journal or notebook."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from test_cli import FINISH, harness, python, write_script

from harness_nb import events as ev
from harness_nb.audit import WIDTH, audit_of, audit_session, report
from harness_nb.types import Approval, Decision, Judgement, Status, ToolCall

SECRET = "sk-proj-Zq83hGk2LmPx71vTnB4cYdWs90aQe"


def call(name: str, **arguments: object) -> dict[str, object]:
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A workspace with a finished session: a file written and changed, a command refused, a check."""
    folder = tmp_path_factory.mktemp("audited")
    steps = [
        call("write_file", path="notes.txt", content="first\n"),
        python("open('notes.txt', 'w').write('second')"),
        call("bash", command="rm -rf /"),
    ]
    model = write_script(folder, *steps, FINISH)
    done = harness(folder, "run", "Write notes.", "--model", model, "--check", "test -s notes.txt", "--policy", "auto")
    assert done.returncode == 0, done.stderr
    return folder, next((folder / "harness_sessions").glob("*.ipynb")).stem


def test_calls_are_listed_with_decision_and_effect(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    said = harness(folder, "audit", session_id, "--json")
    assert said.returncode == 0, said.stderr
    audit = json.loads(said.stdout)
    calls = [entry for entry in audit["entries"] if entry["kind"] == "call"]
    assert [(each["number"], each["tool"], each["decisions"][0]["verdict"]) for each in calls] == [
        (1, "write_file", "allow"),
        (2, "python", "allow"),
        (3, "bash", "deny"),
    ]
    (made,), (changed,), refused = calls[0]["files"], calls[1]["files"], calls[2]
    assert (made["path"], made["done"], made["before"]) == ("notes.txt", "created", None)
    assert changed["done"] == "changed" and changed["before"] == made["after"] and len(changed["after"]) == 64
    assert refused["status"] == "denied" and refused["decisions"][0]["reason"] and refused["files"] == []
    (prompt,) = [entry for entry in audit["entries"] if entry["kind"] == "prompt"]
    assert prompt["settings"]["network"] == "off" and prompt["settings"]["check"] == ["test -s notes.txt"]
    (check,) = [entry for entry in audit["entries"] if entry["kind"] == "check"]
    assert check["passed"] and check["exit_code"] == 0
    totals = audit["totals"]
    assert totals["by_verdict"] == {"allow": 2, "deny": 1} and totals["files_changed"] == 1
    assert audit["started"]["environment"]["Sandbox"]


def test_the_text_is_for_a_hundred_columns(recorded: tuple[Path, str]) -> None:
    folder, session_id = recorded
    said = harness(folder, "audit")
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0] == f"session {session_id}" and max(map(len, lines)) <= WIDTH
    for words in ("call 3 bash: rm -rf /", "deny by ", "file notes.txt created: nothing -> ", "check passed: test -s"):
        assert words in said.stdout, words
    assert "3 calls; decided at first: allow 2, deny 1" in said.stdout


def test_journal_or_notebook_alone_is_enough(recorded: tuple[Path, str], tmp_path: Path) -> None:
    folder, session_id = recorded
    whole = audit_session(folder, session_id)
    for left_out in (f"{session_id}.ipynb", f"{session_id}/journal.jsonl"):
        place = tmp_path / left_out.replace("/", "-")
        shutil.copytree(folder / "harness_sessions", place / "harness_sessions")
        (place / "harness_sessions" / left_out).unlink()
        audit = audit_session(place, session_id)
        assert audit["totals"] == whole["totals"]
        assert [each for each in audit["entries"] if each["kind"] == "call"] == [
            each for each in whole["entries"] if each["kind"] == "call"
        ]


def test_a_damaged_journal_is_said_and_the_rest_is_shown(recorded: tuple[Path, str], tmp_path: Path) -> None:
    folder, session_id = recorded
    shutil.copytree(folder / "harness_sessions", tmp_path / "harness_sessions")
    (tmp_path / "harness_sessions" / f"{session_id}.ipynb").unlink()
    journal = tmp_path / "harness_sessions" / session_id / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[len(lines) // 2 :])[:-9])
    said = harness(tmp_path, "audit", session_id)
    assert said.returncode == 0 and "Traceback" not in said.stderr
    assert said.stderr.startswith("harness-nb: ") and "its beginning is lost" in said.stdout


def test_a_session_that_is_not_there_is_a_wrong_call(recorded: tuple[Path, str]) -> None:
    said = harness(recorded[0], "audit", "nope")
    assert said.returncode == 2 and "no session 'nope'" in said.stderr


def test_secrets_of_old_records_are_masked(
    recorded: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, session_id = recorded
    shutil.copytree(folder / "harness_sessions", tmp_path / "harness_sessions")
    (tmp_path / "harness_sessions" / f"{session_id}.ipynb").unlink()
    journal = tmp_path / "harness_sessions" / session_id / "journal.jsonl"
    journal.write_text(journal.read_text().replace("Write notes.", f"Use {SECRET} and house-of-cards-77."))
    monkeypatch.setenv("HOUSE_TOKEN", "house-of-cards-77")
    audit = audit_session(tmp_path, session_id)
    for text in (json.dumps(audit), "\n".join(report(audit))):
        assert SECRET not in text and "house-of-cards-77" not in text and "[secret" in text


def test_approvals_judgements_and_hosts_are_shown() -> None:
    asked = ToolCall(call_id="1", name="bash", arguments={"command": "make"})
    edited = ToolCall(call_id="1", name="bash", arguments={"command": "make test"})
    judgement = Judgement(
        risk=1.25, authorised=0.75, risk_probabilities=(0.25, 0.5, 0, 0.25), method="labels", model="openai:x"
    )
    ask = Decision(verdict="ask", reason="it runs programs", policy="classifier", judgement=judgement)
    events: list[ev.Event] = [
        ev.PromptAdded(prompt="Build.", options={"network": "allow:pypi.org", "secret": ["TOKEN_NAME"]}),
        ev.CallDecided(call_id="1", name="bash", call=asked, source="%%bash\nmake", decision=ask),
        ev.ApprovalAsked(call_id="1", name="bash", decision=ask),
        ev.ApprovalAnswered(
            call_id="1", name="bash", approval=Approval(approved=True, scope="kind", edited=edited, reason="slowly")
        ),
        ev.NetworkUsed(call_id="1", name="bash", host="pypi.org", port=443, allowed=True, connections=2, sent=10),
        ev.NetworkUsed(call_id="1", name="bash", host="10.0.0.1", port=80, allowed=False, reason="not in the list"),
        ev.ResultAdded(call_id="1", name="bash", status=Status.OK, content=()),
    ]
    audit = audit_of(events)
    text = " ".join(" ".join(report({"session": "s", "warnings": [], **audit})).split())
    for words in (
        "network allow:pypi.org",
        "ask by classifier: it runs programs",
        "risk 1.25 (levels 0 to 3: 0.25, 0.50, 0.00, 0.25), authorised 0.75; labels openai:x",
        "allowed for all of its kind in the session by person: slowly",
        "changed before it ran: command='make test'",
        "host pypi.org:443 reached: 2 connections, 10 bytes sent",
        "host 10.0.0.1:80 refused (not in the list)",
        "secrets granted: TOKEN_NAME",
        "asked 1, of which allowed 1",
    ):
        assert words in text, words
    assert audit["totals"]["hosts"] == ["10.0.0.1", "pypi.org"]


def test_the_page_names_what_the_json_has(recorded: tuple[Path, str]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "audit.md").read_text()
    for name in audit_session(*recorded):
        assert f"`{name}`" in page
