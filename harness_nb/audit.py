"""What a session did and who let it, from its record: every call with decision, reason, approval and effect, in order.

The command line and ``%agent audit`` show it. ``audit_of`` folds events into values for programs, ``report`` makes
lines for people. Secrets are masked in records already; whoever reads the record masks once more.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness_nb import events as ev
from harness_nb.outputs import clean_text
from harness_nb.outputs.masking import Masker
from harness_nb.record import read_record
from harness_nb.secrets_kept import known_secrets
from harness_nb.toolset import FINISH
from harness_nb.types import Approval, Decision, JsonObject

WIDTH = 100
ALWAYS = ("network", "policy", "kernel", "secret", "check", "read_only", "classifier", "rules", "sandbox", "web")
"""Settings that an audit shows of each prompt; of those that were default, ``DEFAULTS``."""

DEFAULTS: JsonObject = {"network": "off", "policy": "ask", "secret": [], "check": [], "read_only": []}


def audit_session(workspace: Path, session_id: str) -> JsonObject:
    """The audit of a recorded session, with the ``warnings`` of reading its record.

    Raises:
        UsageError: if there is no such session, or nothing of it can be read.
    """
    events, warnings = read_record(workspace, session_id)
    masker = Masker(known_secrets(os.environ, workspace, Path.home()))
    found: JsonObject = masker.mask_json({"session": session_id, **audit_of(events), "warnings": warnings})
    return found


def audit_of(events: Iterable[ev.Event]) -> JsonObject:
    """``started``, ``entries`` in order and ``totals``, as plain JSON values."""
    fold = _Fold()
    for event in events:
        fold.apply(event)
    return {"started": fold.started, "entries": fold.entries, "totals": fold.totals()}


class _Fold:
    """The entries so far, and the calls by id."""

    def __init__(self) -> None:
        self.started: JsonObject = {}
        self.entries: list[JsonObject] = []
        self._calls: dict[str, JsonObject] = {}

    def apply(self, event: ev.Event) -> None:
        """Take up one event."""
        match event:
            case ev.SessionStarted():
                told = event.model_dump(mode="json", exclude={"type", "seq", "data_tag", "format_version"})
                self.started = self.started or told
            case ev.PromptAdded():
                settings = {name: event.options[name] for name in ALWAYS if name in event.options}
                self._add("prompt", event, words=event.prompt, settings={**DEFAULTS, **settings})
            case ev.ModelSwitched():
                self._add("model_switched", event, model=event.model, before=event.before)
            case ev.CheckFinished():
                self._add("check", event, **event.model_dump(mode="json", exclude={"type", "seq", "time"}))
            case ev.FinishAccepted():
                self._add("finish_accepted", event, checks=event.checks)
            case ev.FinishRejected() | ev.Warned() | ev.LimitReached() | ev.SessionEnded():
                told = event.model_dump(mode="json", exclude={"type", "seq", "time", "usage"})
                self._add(event.type, event, **told)
            case ev.FilesChanged() if event.call_id == "outside":
                changes = [_change(each) for each in event.changes]
                self._add("files_changed_by_others", event, files=changes)
            case _:
                self._apply_to_call(event)

    def totals(self) -> JsonObject:
        """How many calls came out how, and what they did."""
        calls = [entry for entry in self.entries if entry["kind"] == "call"]
        files = {change["path"] for call in calls for change in call["files"]}
        checks = [entry for entry in self.entries if entry["kind"] == "check"]
        return {
            "calls": len(calls),
            "by_verdict": dict(Counter(call["decisions"][0]["verdict"] for call in calls if call["decisions"])),
            "asked": sum(call["asked"] > 0 for call in calls),
            "approved": sum(any(each["approved"] for each in call["approvals"]) for call in calls),
            "by_status": dict(Counter(call["status"] for call in calls)),
            "files_changed": len(files),
            "hosts": sorted({each["host"] for call in calls for each in call["hosts"]}),
            "checks_passed": sum(check["passed"] for check in checks),
            "checks_failed": sum(not check["passed"] for check in checks),
            "secrets_granted": sorted(
                {
                    str(name)
                    for entry in self.entries
                    if entry["kind"] == "prompt"
                    for name in entry["settings"]["secret"]
                }
            ),
        }

    def _apply_to_call(self, event: ev.Event) -> None:
        match event:
            case ev.CallDecided():
                call = self._call(event.call_id, event.name, event)
                if event.decision.policy != "edited":
                    call |= {"arguments": event.call.arguments, "source": event.source}
                call["decisions"].append(_decision(event.decision))
            case ev.ApprovalAsked():
                self._call(event.call_id, event.name, event)["asked"] += 1
            case ev.ApprovalAnswered():
                approval = {"time": event.time, **_approval(event.approval)}
                self._call(event.call_id, event.name, event)["approvals"].append(approval)
            case ev.CellStarted() if event.call_id != "setup":
                self._call(event.call_id, event.name, event)["ran"] = event.source
            case ev.CellFinished() if event.call_id in self._calls:
                self._calls[event.call_id] |= {"status": event.status.value, "elapsed": event.elapsed}
            case ev.FilesChanged():
                changes = [_change(each) for each in event.changes]
                self._call(event.call_id, event.name, event)["files"].extend(changes)
            case ev.ResultAdded() if event.name != FINISH:
                call = self._call(event.call_id, event.name, event)
                call["status"] = event.status.value
                if event.name == "web_fetch" and (host := _host(call["arguments"].get("url", ""))):
                    call["hosts"].append({"host": host, "by": "web_fetch", "status": event.status.value})
            case ev.NetworkUsed():
                told = event.model_dump(mode="json", exclude={"type", "seq", "time", "call_id", "name"})
                self._call(event.call_id, event.name, event)["hosts"].append(told)
            case _:
                pass

    def _call(self, call_id: str, name: str, event: ev.Event) -> JsonObject:
        """The entry of a call; of one whose beginning is lost, as much as there is."""
        if call_id not in self._calls:
            lists: JsonObject = {"decisions": [], "approvals": [], "files": [], "hosts": []}
            number = len(self._calls) + 1
            told = {"number": number, "call_id": call_id, "tool": name, "arguments": {}, "source": ""}
            self._calls[call_id] = self._add("call", event, **told, **lists, asked=0, status="open", elapsed=None)
        return self._calls[call_id]

    def _add(self, kind: str, event: ev.Event, **told: Any) -> JsonObject:
        entry = {"kind": kind, "seq": event.seq, "time": event.time, **told}
        self.entries.append(entry)
        return entry


def _decision(decision: Decision) -> JsonObject:
    return decision.model_dump(mode="json", exclude_defaults=True)


def _approval(approval: Approval) -> JsonObject:
    return approval.model_dump(mode="json")


def _change(change: ev.FileChange) -> JsonObject:
    done = "created" if change.before is None else "deleted" if change.after is None else "changed"
    return {"done": done, **change.model_dump(mode="json")}


def _host(url: object) -> str:
    try:
        return urlsplit(str(url)).hostname or ""
    except ValueError:
        return ""


def report(audit: JsonObject) -> list[str]:
    """Lines for people, at most ``WIDTH`` characters each."""
    lines = [*_head(audit), ""]
    for entry in audit["entries"]:
        lines += _call_lines(entry) if entry["kind"] == "call" else _other_lines(entry)
    return [*lines, "", *_total_lines(audit["totals"])]


def _head(audit: JsonObject) -> list[str]:
    started = audit["started"]
    lines = _wrapped(f"session {audit['session']}", 0)
    if not started:
        return [*lines, "  its beginning is lost: model, kernel and sandbox are not known"]
    for name in ("model", "kernel", "workspace", "harness_version"):
        lines += _wrapped(f"{name.replace('_', ' ')}: {started.get(name, '')}", 2)
    sandbox = started.get("environment", {}).get("Sandbox") or "the record says of none"
    lines += _wrapped(f"sandbox: {sandbox}", 2)
    if started.get("origin"):
        lines += _wrapped("from: " + " ".join(f"{key} {value}" for key, value in started["origin"].items()), 2)
    return lines


def _call_lines(call: JsonObject) -> list[str]:
    first = next((line for line in str(call["source"]).splitlines() if line.strip() not in ("", "%%bash")), "")
    what = first or " ".join(f"{key}={value!r}" for key, value in call["arguments"].items())
    lines = _wrapped(f"{_clock(call)} call {call['number']} {call['tool']}: {what[:300]}", 0)
    for decision in call["decisions"]:
        lines += _wrapped(f"{decision['verdict']} by {decision['policy']}: {decision['reason']}", 4)
        lines += _wrapped(_judgement(decision), 6)
    if call["asked"] and not call["approvals"]:
        lines += _wrapped("asked, and not answered", 4)
    for approval in call["approvals"]:
        scope = "all of its kind in the session" if approval["scope"] == "kind" else "this call"
        said = f"allowed for {scope}" if approval["approved"] else "refused"
        reason = f": {approval['reason']}" if approval["reason"] else ""
        lines += _wrapped(f"{said} by {approval['by']}{reason}", 4)
        if approval["edited"]:
            told = " ".join(f"{key}={value!r}" for key, value in approval["edited"]["arguments"].items())
            lines += _wrapped(f"changed before it ran: {told[:600]}", 6)
    took = "" if call["elapsed"] is None else f", {call['elapsed']:.1f} s"
    lines += _wrapped(f"{call['status']}{took}", 4)
    lines += [line for change in call["files"] for line in _wrapped(_file(change), 4)]
    return lines + [line for host in call["hosts"] for line in _wrapped(_reached(host), 4)]


def _judgement(decision: JsonObject) -> str:
    if why := decision.get("no_verdict"):
        return f"classifier: no verdict ({why})"
    judgement = decision.get("judgement")
    if not judgement:
        return ""
    levels = ", ".join(f"{value:.2f}" for value in judgement.get("risk_probabilities", ()))
    levels = f" (levels 0 to 3: {levels})" if levels else ""
    asked = " ".join(filter(None, (judgement.get("method", ""), judgement.get("model", ""))))
    return f"classifier: risk {judgement['risk']:.2f}{levels}, authorised {judgement['authorised']:.2f}; {asked}"


def _file(change: JsonObject) -> str:
    before, after = (str(change[name])[:12] if change[name] else "nothing" for name in ("before", "after"))
    return f"file {change['path']} {change['done']}: {before} -> {after}, {change['size']:,} bytes"


def _reached(host: JsonObject) -> str:
    if "by" in host:
        return f"host {host['host']} by {host['by']}: {host['status']}"
    said = "reached" if host.get("allowed") else "refused"
    reason = f" ({host['reason']})" if host.get("reason") else ""
    counts = f"{host.get('connections', 0)} connections, {host.get('sent', 0):,} bytes sent"
    return f"host {host.get('host')}:{host.get('port')} {said}{reason}: {counts}, {host.get('received', 0):,} received"


def _other_lines(entry: JsonObject) -> list[str]:
    match entry["kind"]:
        case "prompt":
            told = ", ".join(f"{name} {_value(value)}" for name, value in entry["settings"].items())
            return [*_wrapped(f"{_clock(entry)} task: {entry['words']}", 0), *_wrapped(f"settings: {told}", 4)]
        case "check":
            said = "passed" if entry["passed"] else "failed"
            lines = _wrapped(f"{_clock(entry)} check {said}: {entry['command']}", 0)
            for text in entry["output"].splitlines()[:6]:
                lines += _wrapped(text, 4)
            return lines
        case "files_changed_by_others":
            lines = [line for change in entry["files"] for line in _wrapped(_file(change), 4)]
            return [f"{_clock(entry)} changed by somebody else, between two tasks", *lines]
        case "model_switched":
            return _wrapped(f"{_clock(entry)} model: {entry['model']}, before {entry['before']}", 0)
        case "finish_accepted":
            return _wrapped(f"{_clock(entry)} finish accepted, {entry['checks']} checks passed", 0)
        case "finish_rejected":
            return _wrapped(f"{_clock(entry)} finish refused", 0)
        case kind:
            told = ": ".join(str(entry[name]) for name in ("reason", "text") if entry.get(name))
            return _wrapped(f"{_clock(entry)} {kind.replace('_', ' ')}: {told}", 0)


def _total_lines(totals: JsonObject) -> list[str]:
    verdicts = ", ".join(f"{name} {count}" for name, count in sorted(totals["by_verdict"].items())) or "none"
    statuses = ", ".join(f"{name} {count}" for name, count in sorted(totals["by_status"].items())) or "none"
    told = [
        f"{totals['calls']} calls; decided at first: {verdicts}; asked {totals['asked']}, of which allowed "
        f"{totals['approved']}; came out: {statuses}",
        f"{totals['files_changed']} files changed; hosts: {', '.join(totals['hosts']) or 'none that the record knows'}",
        f"checks: {totals['checks_passed']} passed, {totals['checks_failed']} failed; "
        f"secrets granted: {', '.join(totals['secrets_granted']) or 'none'}",
    ]
    return [line for text in told for line in _wrapped(text, 0)]


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _clock(entry: JsonObject) -> str:
    return str(entry["time"])[11:19] or "--:--:--"


def _wrapped(text: str, indent: int) -> list[str]:
    """A text as lines, without control characters; empty for an empty one."""
    plain = " ".join(clean_text(text).split())
    return textwrap.wrap(
        plain, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4), break_on_hyphens=False
    )
