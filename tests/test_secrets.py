"""Case S8: keys and tokens never reach the tool kernel unless they are granted, and are nowhere in the record.

The sessions have the real tool kernel. ``KEY`` is that of the provider; what knows it here is the script of the model.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_session import DONE, call, opened, results, script, send, text_of

from harness_nb import events as ev
from harness_nb.approval import DenyApprover, FixedApprover
from harness_nb.context import Surroundings, system_prompt
from harness_nb.errors import UsageError
from harness_nb.export import export_session
from harness_nb.kernel import ToolKernel
from harness_nb.kernel.environment import Granted, kernel_environment
from harness_nb.outputs.masking import Masker
from harness_nb.outputs.secret_forms import PART, SHORTEST
from harness_nb.policy import deny_masked_secrets
from harness_nb.policy.addresses import PORTS
from harness_nb.ports import CallDelta, TextDelta
from harness_nb.safeguards import model_keys
from harness_nb.secrets_kept import Keeper, MaskedApprover, granted_secrets, known_secrets, too_plain
from harness_nb.session import Session
from harness_nb.settings import Settings
from harness_nb.types import Approval, Decision, Message, Status, TextPart, ToolCall
from harness_nb.web.fetching import MOST_BYTES, MOST_REDIRECTS, SECONDS

KEY = "sk-proj-Zx81hQm2Lw9RtVb4KcNe73YpJd5Gs6Ua0Fo-IiEeHhTt"
TOKEN = "tok/81c5+e0f97a4b2d36"
MASK = "[secret OPENAI_API_KEY]"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SERVICE_TOKEN", TOKEN)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


def pieces_of(secret: str, least: int = 12) -> list[str]:
    return [secret[start : start + least] for start in range(len(secret) - least + 1)]


def said(result: ev.ResultAdded) -> str:
    """The text of a result without the line that opens the envelope."""
    return text_of(result).partition("\n")[2]


async def worked(workspace: Path, **overrides: Any) -> list[ev.Event]:
    """The events of a session in which a person allows all that is asked about."""
    allowing = FixedApprover([Approval(approved=True)] * 9)
    session = await Session.open(Settings.load(workspace, overrides, {}), allowing)
    try:
        return await send(session)
    finally:
        await session.aclose()


def record_of(workspace: Path) -> str:
    """All that a session has written."""
    files = [path for path in (workspace / "harness_sessions").rglob("*") if path.is_file()]
    return "".join(path.read_bytes().decode("latin-1") for path in files)


SHOWN = f"""
import subprocess, sys, pathlib, json, base64, time
key = "{KEY}"
print(json.dumps({{"a": [key], key: key}}), repr({{'k': key}}), base64.b64encode(key.encode()))
for start in range(0, len(key), 5): print(key[start:start + 5], end="", flush=True); time.sleep(0.02)
for done in range(3): print(f"\\r{{done}} of 3 {{key}}", end="", file=sys.stderr)
subprocess.run(["bash", "-c", "echo from below $0 >&2", key])
pathlib.Path(key + ".txt").write_text("x"); print(sorted(p.name for p in pathlib.Path().iterdir()))
from IPython.display import HTML, JSON, SVG, display
display(HTML(f"<b>{{key}}</b>"), JSON({{"k": key}}), SVG(f"<svg xmlns='http://www.w3.org/2000/svg'><text>{{key}}</text></svg>"))
for number in range(3000): print(number, key)
def use(key): raise RuntimeError(f"401 for {{key}}")
use(key)
"""


async def test_a_key_is_nowhere_in_what_a_session_records_shows_and_sends(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        {"text": f"I take the key {KEY} for it.", **call("python", code=SHOWN)},
        call("bash", command=f"curl --version >/dev/null; echo {KEY} | rev | rev; false"),
        call("write_file", path="config.ini", content=f"key={KEY}"),
        call("read_file", path="config.ini"),
        call("bash", command=f"rm -r /{KEY}"),
        {"calls": [{"name": "no_such_tool", "arguments": {"x": KEY}}, {"name": "python", "arguments": KEY}]},
        call("finish", summary=f"It worked with {KEY}."),
        {"text": f"Then I end with {KEY}."},
    )
    async with opened(tmp_path, model=model, check=["cat config.ini; false"]) as session:
        shown = [item async for item in session.send(f"Use {KEY}.")]
    assert [str(item) for item in shown if KEY[:12] in str(item)] == []
    assert not [piece for piece in pieces_of(KEY) if piece in "".join(map(str, shown)) + record_of(tmp_path)]
    masked = {type(item).__name__ for item in shown if MASK in str(item)}
    assert masked >= {"PromptAdded", "ModelReplied", "CallDecided", "CellStarted", "CellOutput", "ResultAdded"}
    assert masked >= {"CheckFinished", "FinishRejected", "FilesChanged", "ApprovalAsked"}
    assert any(isinstance(item, ev.ContextOffloaded) for item in shown)
    streamed = "".join(item.text for item in shown if isinstance(item, TextDelta))
    assert streamed.startswith(f"I take the key {MASK} for it.")
    assert MASK in "".join(item.text for item in shown if isinstance(item, CallDelta))
    assert (tmp_path / "config.ini").read_text() == f"key={KEY}\n", "what runs is the true source"
    exported = tmp_path / "out.ipynb"
    export_session(tmp_path, session.id, exported)
    assert MASK in exported.read_text() and not [piece for piece in pieces_of(KEY) if piece in exported.read_text()]


async def test_tool_code_has_no_key_whichever_way_it_runs(tmp_path: Path) -> None:
    look = f"import os; print([name for name, value in os.environ.items() if {KEY[:9]!r} in value or 'TOKEN' in name])"
    code = f"{look}; print(open('/proc/self/environ').read().count('OPENAI_API_KEY'))"
    model = script(
        tmp_path,
        call("python", code=code),
        {"calls": [{"name": "python", "arguments": {"code": "import time; time.sleep(60)", "timeout": 0.3}},
                   {"name": "bash", "arguments": {"command": "env | grep -c -e OPENAI -e TOKEN -e ASKPASS; true"}},
                   {"name": "wait", "arguments": {"stop": True}}]},
        DONE,
    )  # fmt: skip
    events = await worked(tmp_path, model=model, check=["! env | grep -q -e OPENAI -e SERVICE_TOKEN"])
    own, _, beside, _, finished = results(events)
    assert said(own).startswith("[]\n0\n") and said(beside).startswith("0\n")
    assert finished.status is Status.OK, "the check has no key either"


async def test_a_granted_secret_reaches_tool_code_and_checks_and_is_masked(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        call("python", code="import os; t = os.environ['SERVICE_TOKEN']; print(len(t), t, t[::-1] == 'x')"),
        call("bash", command="echo $SERVICE_TOKEN; echo -n $SERVICE_TOKEN | base64"),
        DONE,
    )
    check = f"test ${{#SERVICE_TOKEN}} -eq {len(TOKEN)}"
    async with opened(tmp_path, model=model, secret=["SERVICE_TOKEN"], check=[check]) as session:
        events = await send(session)
        prompt = session._place.system_prompt()
    python, bash, finished = results(events)
    assert said(python).startswith(f"{len(TOKEN)} [secret SERVICE_TOKEN] False\n")
    assert said(bash).splitlines()[:2] == ["[secret SERVICE_TOKEN]", "[secret SERVICE_TOKEN]"]
    assert finished.status is Status.OK
    started = next(event for event in events if isinstance(event, ev.SessionStarted))
    assert started.options["secret"] == ["SERVICE_TOKEN"] and "SERVICE_TOKEN" in prompt
    assert not [piece for piece in pieces_of(TOKEN) if piece in record_of(tmp_path) + prompt]
    async with opened(tmp_path, model=model, session=session.id) as again:
        with pytest.raises(UsageError, match=r"has no secrets in this session.*--new"):
            await again.use(Settings.load(tmp_path, {"model": model, "secret": ["SERVICE_TOKEN"]}, {}), DenyApprover())


async def test_recorded_code_with_a_mask_is_not_run_in_its_place(tmp_path: Path) -> None:
    steps = [call("python", code=f"key = '{KEY}'"), call("python", code="n = 1"), DONE]
    model = script(tmp_path, *steps, call("rebuild"), call("python", code="print(key)"), DONE)
    async with opened(tmp_path, model=model) as session:
        await send(session)
    (tmp_path / "s2.json").write_text(json.dumps([call("rebuild"), call("python", code="print(key)"), DONE]))
    async with opened(tmp_path, model="scripted:s2.json", session=session.id) as again:
        rebuilt, printed, _ = results(await send(again, "more"))
    assert rebuilt.status is Status.ERROR and printed.status is Status.ERROR
    assert f"MaskedSource: not run: {MASK} stands in it" in text_of(rebuilt)
    async with opened(tmp_path, model=f"replay:{session.id}") as played:
        denied, other, _ = results(await send(played))
    assert (denied.status, other.status) == (Status.DENIED, Status.OK)
    assert "--secret NAME" in text_of(denied)


@pytest.mark.parametrize("tool", ["python", "bash", "write_file", "search_replace"])
def test_a_mask_that_is_copied_into_a_call_is_refused(tool: str) -> None:
    call = ToolCall(call_id="c", name=tool, arguments={"path": ".env", "content": f"K={MASK}"})
    decision = deny_masked_secrets(call, "")
    assert decision is not None and decision.verdict == "deny" and MASK in decision.reason
    assert deny_masked_secrets(call.model_copy(update={"name": "search_files"}), "") is None
    assert deny_masked_secrets(call.model_copy(update={"arguments": {"content": "a[secret]"}}), "x[secret] = 1") is None


async def test_files_with_secrets_are_not_copied_into_the_record(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DB_PASSWORD='correct horse 7'\n")
    model = script(tmp_path, call("bash", command="cat .env; echo more >> .env; echo x > plain.txt"), DONE)
    events = await worked(tmp_path, model=model)
    assert said(results(events)[0]).startswith("DB_PASSWORD='[secret DB_PASSWORD]'\n")
    changed = next(event for event in events if isinstance(event, ev.FilesChanged))
    assert {change.path: change.kept for change in changed.changes} == {".env": False, "plain.txt": True}
    assert "correct horse" not in record_of(tmp_path)


def test_what_is_known(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        '# A_KEY=commented0ut\nexport B_KEY="quo ted value"\nC_TOKEN=ab cd # word\nPLAIN=1\n'
    )
    (tmp_path / ".netrc").write_text("machine git.example login me password n3trc-pa55\n")
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text("[default]\naws_access_key_id=AKIA\naws_secret_access_key=abcdefgh12\n")
    environment = {
        "OPENAI_API_KEY": f" {KEY}\n", "SAME_KEY": KEY, "DATABASE_URL": "postgres://u:p4ss%2Fword@h/db",
        "HTTPS_PROXY": "http://me:proxy-pa55@proxy:3128", "GOOGLE_APPLICATION_CREDENTIALS": "/home/me/key.json",
        "SSH_KEY_PATH": "~/.ssh/id", "TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "100000000", "USER_NAME": "x" * 9,
        "AWS_REGION": "eu-central-1", "API_TOKEN_URL": "https://auth.example/token", "MY_PASSWORD": "changeme",
    }  # fmt: skip
    assert known_secrets(environment, tmp_path, tmp_path) == {
        "OPENAI_API_KEY": KEY,
        "DATABASE_URL": "p4ss/word",
        "HTTPS_PROXY": "proxy-pa55",
        "B_KEY": "quo ted value",
        "PASSWORD of git.example in .netrc": "n3trc-pa55",
        "AWS_SECRET_ACCESS_KEY of default": "abcdefgh12",
    }
    assert known_secrets({}, tmp_path / "none", tmp_path / "none") == {}


def test_what_can_be_granted() -> None:
    environment = {"A_TOKEN": TOKEN, "OPENAI_API_KEY": KEY, "COPY": KEY, "PIN": "1234"}
    assert granted_secrets(["A_TOKEN"], environment, ["OPENAI_API_KEY"]) == {"A_TOKEN": TOKEN}
    for name, why in [
        ("NONE", "--secret NONE: there is no such variable"),
        ("A-B", "takes the name"),
        (f"A={TOKEN}", "takes the name"),
        ("OPENAI_API_KEY", "OPENAI_API_KEY is the key of a model in use.*another name"),
        ("COPY", "OPENAI_API_KEY is the key of a model in use"),
    ]:
        with pytest.raises(UsageError, match=why) as refused:
            granted_secrets([name], environment, ["OPENAI_API_KEY"])
        assert TOKEN not in str(refused.value) and KEY not in str(refused.value)
    assert too_plain({"PIN": "1234", "A": TOKEN}) == [
        "The value of PIN is too short or too common to be masked: if tool code prints it, it is in the record."
    ]


def test_the_keys_of_all_models_in_use_are_known(tmp_path: Path) -> None:
    given = {"model": "anthropic:m", "small_model": "openai:m", "classifier": "scripted:x.json"}
    assert model_keys(Settings.load(tmp_path, given, {})) == ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"]
    assert model_keys(Settings.load(tmp_path, {}, {})) == ["OPENAI_API_KEY"], "the default model's"


async def test_a_session_that_wants_what_is_not_granted_leaves_nothing_behind(tmp_path: Path) -> None:
    for name in ("NOT_THERE", "OPENAI_API_KEY"):
        settings = Settings.load(tmp_path, {"model": "openai:m", "secret": [name]}, {})
        with pytest.raises(UsageError, match=name):
            await Session.open(settings, DenyApprover())
    assert not list(tmp_path.iterdir())


def test_only_what_is_granted_may_look_like_a_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_environment({"MY_API_KEY": "x"}, Granted({"MY_API_KEY": "x"}))["MY_API_KEY"] == "x"
    spec = tmp_path / "kernels" / "leaky"
    spec.mkdir(parents=True)
    kernel = {"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "leaky",
              "language": "python", "env": {"OPENAI_API_KEY": KEY, "PLAIN": "1"}}  # fmt: skip
    (spec / "kernel.json").write_text(json.dumps(kernel))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    with pytest.raises(UsageError, match=r"'leaky' sets OPENAI_API_KEY.*kernel\.json"):
        ToolKernel(name="leaky", directory=tmp_path)


def test_a_signed_item_of_a_provider_is_left_out_rather_than_changed() -> None:
    keeper = Keeper({"OPENAI_API_KEY": KEY})
    item = {"type": "reasoning", "summary": f"use {KEY}"}
    message = Message(role="assistant", content=(TextPart(text=KEY),), provider="openai", provider_items=(item,))
    kept = keeper.event(ev.ModelReplied(turn=1, message=message))
    assert isinstance(kept, ev.ModelReplied)
    assert (kept.message.text, kept.message.provider, kept.message.provider_items) == (MASK, None, ())
    plain = ev.ModelReplied(turn=1, message=message.model_copy(update={"content": (), "provider_items": ({"a": 1},)}))
    assert keeper.event(plain) is plain


async def test_a_person_is_asked_with_masks() -> None:
    asked = FixedApprover()
    call = ToolCall(call_id="c", name="bash", arguments={"command": f"curl -u {KEY} h"})
    decision = Decision(verdict="ask", reason=f"it sends {KEY}", policy="p")
    await MaskedApprover(asked, Masker({"OPENAI_API_KEY": KEY})).ask(call, f"%%bash\ncurl -u {KEY} h", decision)
    await MaskedApprover(asked, Masker({"OPENAI_API_KEY": KEY})).answer(f"{KEY}?", secret=False)
    assert KEY not in str(vars(asked)) and MASK in str(vars(asked))


def test_the_model_is_told_of_masks_and_grants() -> None:
    told = system_prompt(Surroundings(environment={}, secrets=["SERVICE_TOKEN"]))
    assert "[secret NAME]" in told and "granted tool code these variables: SERVICE_TOKEN." in told
    assert "granted tool code" not in system_prompt(Surroundings(environment={}))


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2)")
def test_the_environment_of_the_command_line_is_not_for_other_programs() -> None:
    code = (
        "import ctypes; from harness_nb.cli.shielding import hide_environment as hide; get = lambda: ctypes.CDLL(None)"
    )
    code += (
        ".prctl(3, 0, 0, 0, 0); print(get()); hide(); print(get()); print(len(open('/proc/self/environ').read()) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0", "True"]


def test_the_page_on_secrets_says_the_bounds_in_force() -> None:
    page = " ".join((Path(__file__).parent.parent / "docs" / "secrets.md").read_text("utf-8").split())
    assert f"values under {SHORTEST} characters" in page and f"every run of **{PART}** is found" in page
    assert f"The first {MOST_BYTES // 10**6} MB, in {SECONDS:g} seconds at most" in page
    assert f"each of at most {MOST_REDIRECTS} redirects" in page
    assert f"ports other than {' and '.join(map(str, sorted(PORTS)))}" in page
