"""The loop, judged by the events it yields: a listed model, a fake kernel, no process and no clock."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from harness_nb import events as ev
from harness_nb.approval import DenyApprover, FixedApprover
from harness_nb.cells import Cells
from harness_nb.context import Conversation, words
from harness_nb.errors import KernelError, ModelError
from harness_nb.kernel import FakeKernel
from harness_nb.kernel.fake import Answer
from harness_nb.loop import run
from harness_nb.outputs import Firewall
from harness_nb.outputs.envelope import enveloped
from harness_nb.policy import ask_before_dangerous_commands, deny_outside_workspace
from harness_nb.ports import Approver, Delta, ExecuteReply, ModelSettings, Output, TextDelta
from harness_nb.toolset import STANDARD_TOOLS, Toolset
from harness_nb.types import Approval, Limits, Message, Status, ToolCall, ToolSpec, Usage, text_content
from harness_nb.work import Work


class ListedModel:
    """Gives the replies it was made with, in order, the last one for ever; keeps the requests."""

    name = "listed"
    accepts_images = True

    def __init__(self, *replies: Message | ModelError) -> None:
        self.replies = list(replies)
        self.requests: list[Sequence[Message]] = []

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> AsyncGenerator[Delta | Message]:
        self.requests.append(list(messages))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, ModelError):
            raise reply
        if reply.text:
            yield TextDelta(reply.text)
        yield reply

    async def aclose(self) -> None:
        self.requests.clear()


class BrokenKernel(FakeKernel):
    """A kernel that cannot be started."""

    async def execute(
        self, source: str, timeout: float | None = None, *, beside: bool = False
    ) -> AsyncGenerator[Output | ExecuteReply]:
        raise KernelError("no such kernel")
        yield ExecuteReply(Status.OK)


def echoing(replies: Mapping[str, Answer] | None = None) -> FakeKernel:
    """A kernel whose cells say what they ran, but for those in ``replies``."""
    return FakeKernel(lambda source: (replies or {}).get(source, f"ran {source}\n"))


COUNTER = itertools.count()


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> Message:
    tool_calls = tuple(ToolCall(call_id=f"c{next(COUNTER)}", name=name, arguments=args) for name, args in made)
    return Message(
        role="assistant",
        content=text_content(text) if text else (),
        tool_calls=tool_calls,
        usage=Usage(output_tokens=10),
    )


def says(text: str, finish_reason: str = "stop") -> Message:
    return Message(role="assistant", content=text_content(text), finish_reason=finish_reason)


PYTHON = ("python", {"code": "1"})


def gate_of(*verdicts: bool) -> Callable[[], AsyncGenerator[ev.CheckFinished]]:
    remaining = list(verdicts)

    async def gate() -> AsyncGenerator[ev.CheckFinished]:
        if verdicts:
            passed = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            yield ev.CheckFinished(command="make", passed=passed, exit_code=int(not passed), output="said", elapsed=0.1)

    return gate


async def work_on(
    *replies: Message | ModelError,
    kernel: FakeKernel | None = None,
    gate: tuple[bool, ...] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    approver: Approver | None = None,
    clock: Callable[[], float] = lambda: 0.0,
    inspected: str = "",
    model: ListedModel | None = None,
) -> tuple[list[ev.Event], Conversation, ListedModel, FakeKernel]:
    model, kernel = model or ListedModel(*replies), kernel or echoing()
    conversation = Conversation([ev.PromptAdded(prompt="go")])
    work = Work(
        system="system",
        model=model,
        cells=Cells(
            kernel, lambda call, plot: Firewall(call.call_id, call.name, plot=plot), clock, lambda: (inspected, ())
        ),
        tools=Toolset(STANDARD_TOOLS, workspace="/home/me/project"),
        rules=(deny_outside_workspace, ask_before_dangerous_commands),
        approver=approver or DenyApprover(),
        gate=gate_of(*gate),
        clock=clock,
        limits=limits,
        settings=ModelSettings(),
    )
    items = [item async for item in run(work, conversation)]
    return [item for item in items if isinstance(item, ev.EventBase)], conversation, model, kernel


def types(events: Sequence[ev.Event]) -> list[str]:
    return [event.type for event in events]


def only(events: Sequence[ev.Event], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_the_events_of_a_short_run_in_order() -> None:
    events, conversation, model, _ = await work_on(calls(PYTHON, text="Look."), says("All done."))
    assert types(events) == [
        *("model_requested", "model_replied", "call_decided", "cell_started", "cell_output", "cell_finished"),
        *("result_added", "model_requested", "model_replied", "finish_accepted", "session_ended"),
    ]
    assert events[-1].reason == "finished"
    assert events[-1].turns == 2
    assert [message.role for message in conversation.messages] == ["user", "assistant", "tool", "assistant"]
    assert [message.role for message in model.requests[1]] == ["system", "user", "assistant", "tool"]
    assert "ran 1" in model.requests[1][-1].text


async def test_calls_of_one_reply_run_in_order_even_after_a_failure() -> None:
    error = [
        Output("error", {"ename": "ValueError", "evalue": "no", "traceback": ["ValueError: no"]}),
        ExecuteReply(Status.ERROR, execution_count=1, ename="ValueError", evalue="no"),
    ]
    kernel = echoing({"a": error})
    events, *_ = await work_on(calls(("python", {"code": "a"}), ("python", {"code": "b"})), says("x"), kernel=kernel)
    assert kernel.executed == ["a", "b"]
    assert [event.status for event in only(events, ev.ResultAdded)] == [Status.ERROR, Status.OK]


async def test_malformed_unknown_and_unfit_calls_never_run() -> None:
    broken = Message(role="assistant", tool_calls=(ToolCall(call_id="m", name="python", malformed='{"code": "1'),))
    events, _, model, kernel = await work_on(
        broken, calls(("pyhton", {"code": "1"})), calls(("python", {"cod": "1"})), says("x")
    )
    assert kernel.executed == []
    assert [event.status for event in only(events, ev.ResultAdded)] == [Status.ERROR] * 3
    assert "pyhton" in model.requests[2][-1].text
    assert "code is missing" in model.requests[3][-1].text


async def test_a_denied_call_is_told_and_does_not_run() -> None:
    events, _, model, kernel = await work_on(calls(("read_file", {"path": "../secrets.txt"})), says("x"))
    assert kernel.executed == []
    assert only(events, ev.ResultAdded)[0].status is Status.DENIED
    assert model.requests[1][-1].text.startswith("BLOCKED: the path ../secrets.txt is outside the workspace")
    assert "Nothing of this call was run" in model.requests[1][-1].text


async def test_an_ask_goes_to_the_approver_and_its_answer_counts() -> None:
    risky = ("bash", {"command": "rm -rf build"})
    yes, no = Approval(approved=True), Approval(approved=False, reason="a person said no: keep it")
    approver = FixedApprover([yes, no])
    events, _, model, kernel = await work_on(calls(risky, risky), says("x"), approver=approver)
    assert len(kernel.executed) == 1
    assert [call.arguments["command"] for call in approver.asked] == ["rm -rf build"] * 2
    assert "keep it" in model.requests[1][-1].text
    assert types(events).count("approval_asked") == types(events).count("approval_answered") == 2


async def test_nobody_there_means_deny_at_once() -> None:
    events, *_, kernel = await work_on(calls(("bash", {"command": "sudo ls"})), says("x"))
    assert kernel.executed == []
    assert only(events, ev.ApprovalAnswered)[0].approval.by == "nobody"


async def test_a_failing_check_goes_back_to_the_model() -> None:
    finish = ("finish", {"summary": "done"})
    events, _, model, _ = await work_on(calls(finish), calls(finish), gate=(False, True))
    assert types(events).count("finish_rejected") == 1
    assert "This check failed with exit status 1: make\nsaid" in model.requests[1][-1].text
    assert (events[-1].reason, only(events, ev.FinishAccepted)[0].checks) == ("finished", 1)


def test_a_refusal_says_what_passed_too() -> None:
    about = {"exit_code": None, "output": "said", "elapsed": 0.1}
    checks = [ev.CheckFinished(command=name, passed=name == "files", **about) for name in ("files", "make")]
    said = words.refused(checks)
    assert said.startswith("Not finished: a check failed.") and "This check failed: make\nsaid" in said
    assert said.endswith("Passed: files")


async def test_a_reply_without_calls_ends_like_a_finish_and_is_checked() -> None:
    events, _, model, _ = await work_on(says("I am done"), says("Now I am"), gate=(False, True))
    assert model.requests[1][-1].role == "user"
    assert model.requests[1][-1].text.startswith("Your reply had no tool call, so it was taken as a finish.")
    assert "failed" in model.requests[1][-1].text
    assert only(events, ev.FinishAccepted)[0].summary == "Now I am"


async def test_refusals_are_capped() -> None:
    events, *_ = await work_on(calls(("finish", {"summary": "done"})), gate=(False,))
    assert types(events).count("finish_rejected") == words.MAX_REFUSALS
    assert events[-1].reason == "rejected"


async def test_calls_behind_finish_get_a_result_and_do_not_run() -> None:
    finish = ("finish", {"summary": "done"})
    events, conversation, _, kernel = await work_on(calls(finish, PYTHON), calls(finish, PYTHON), gate=(False, True))
    assert kernel.executed == []
    assert types(events)[-4:] == ["finish_accepted", "result_added", "result_added", "session_ended"]
    assert [event.status for event in only(events, ev.ResultAdded)] == [
        Status.ERROR,
        Status.DENIED,
        Status.OK,
        Status.DENIED,
    ]
    assert not conversation.open_calls


async def test_what_a_cell_should_not_have_done_is_told_to_model_and_person() -> None:
    events, _, model, _ = await work_on(calls(PYTHON), says("x"), inspected="tests/a.py was put back.")
    assert model.requests[1][-1].text.endswith("[tests/a.py was put back.]")
    assert only(events, ev.Warned)[0].text == "tests/a.py was put back."


async def test_an_absolute_path_into_the_workspace_is_taken_as_relative() -> None:
    events, _, _, kernel = await work_on(calls(("read_file", {"path": "/home/me/project/src/a.py"})), says("x"))
    assert kernel.executed == ["read_file('src/a.py')"]
    events, *_ = await work_on(calls(("read_file", {"path": "/home/me/other/a.py"})), says("x"))
    assert only(events, ev.ResultAdded)[0].status is Status.DENIED


async def test_the_turn_limit_stops_and_is_announced_to_the_model() -> None:
    events, _, model, _ = await work_on(calls(PYTHON), limits=Limits(max_turns=4))
    assert types(events)[-2:] == ["limit_reached", "session_ended"]
    assert events[-1].reason == "limit"
    assert "--max-turns" in events[-1].text
    assert len(model.requests) == 4
    assert "2 turns are left" in model.requests[2][-1].text


async def test_token_cost_and_time_limits_stop() -> None:
    replies = (calls(PYTHON), calls(PYTHON))
    events, *_ = await work_on(*replies, limits=Limits(max_tokens=15))
    assert (only(events, ev.LimitReached)[0].limit, events[-1].turns) == ("tokens", 2)
    costly = Message(role="assistant", tool_calls=calls(PYTHON).tool_calls, usage=Usage(cost_usd=0.6))
    events, *_ = await work_on(costly, limits=Limits(max_cost=1.0))
    assert (only(events, ev.LimitReached)[0].limit, events[-1].turns) == ("cost", 2)
    ticks = itertools.count(step=10.0)
    events, *_ = await work_on(*replies, limits=Limits(max_minutes=1), clock=lambda: next(ticks))
    assert only(events, ev.LimitReached)[0].limit == "minutes"


async def test_truncated_and_empty_replies_do_not_count_as_a_finish() -> None:
    events, *_ = await work_on(says("half a", "length"), says(" "), says("done"))
    assert [event.reason for event in only(events, ev.Nudged)] == ["truncated reply", "empty reply"]
    assert events[-1].reason == "finished"
    events, *_ = await work_on(says(""))
    assert events[-1].reason == "rejected"


async def test_failures_of_model_and_kernel_end_the_work_as_data() -> None:
    events, *_ = await work_on(ModelError("overloaded"))
    assert (events[-1].reason, events[-1].text) == ("model_error", "overloaded")
    events, *_ = await work_on(calls(PYTHON), kernel=BrokenKernel())
    assert (events[-1].reason, events[-1].text) == ("kernel_error", "no such kernel")


async def test_a_dead_kernel_is_a_result_and_the_work_goes_on() -> None:
    kernel = echoing({"1": [ExecuteReply(Status.KERNEL_DIED, detail="killed by SIGKILL; names are lost")]})
    events, _, model, _ = await work_on(calls(PYTHON), says("done"), kernel=kernel)
    assert only(events, ev.ResultAdded)[0].status is Status.KERNEL_DIED
    assert "SIGKILL" in model.requests[1][-1].text
    assert events[-1].reason == "finished"


RUNNING = [Output("stream", {"name": "stdout", "text": "epoch 1\n"}), ExecuteReply(Status.RUNNING)]
TRAIN = ("python", {"code": "train()", "timeout": 5})


def fast_clock() -> Callable[[], float]:
    """Each look at the clock is a second later."""
    seconds = itertools.count(step=1.0)
    return lambda: next(seconds)


async def test_a_call_past_its_timeout_goes_on_and_wait_watches_it() -> None:
    kernel = echoing({"train()": RUNNING})
    replies = (
        calls(TRAIN),
        calls(("python", {"code": "x"}), ("bash", {"command": "ls"})),
        calls(("finish", {"summary": "done"})),
        calls(("wait", {"seconds": 20, "until": "epoch 9"})),
        calls(("wait", {"stop": True})),
        says("done"),
    )
    events, _, _, kernel = await work_on(*replies, kernel=kernel, clock=fast_clock())
    results = only(events, ev.ResultAdded)
    train, refused, listed, unfinished, waited, _ = results
    assert [result.status for result in results] == [
        *(Status.RUNNING, Status.ERROR, Status.OK, Status.ERROR, Status.RUNNING, Status.INTERRUPTED),
    ]
    assert "epoch 1" in train.content[0].text and f"its id is {train.call_id}" in train.content[0].text
    assert f"{train.call_id} is still running" in refused.content[0].text
    assert "ran %%bash" in listed.content[0].text
    assert f"{train.call_id} is still running" in unfinished.content[0].text
    assert "epoch 1" not in waited.content[0].text and "the 20 s are over" in waited.content[0].text
    assert kernel.executed == ["train()", "%%bash\nls"]
    finished = [(event.call_id, event.status) for event in only(events, ev.CellFinished)]
    assert finished[-1] == (train.call_id, Status.INTERRUPTED)
    assert events[-1].reason == "finished"


async def test_wait_ends_at_a_match_and_at_the_end() -> None:
    gate = asyncio.Event()

    class Training(FakeKernel):
        async def execute(
            self, source: str, timeout: float | None = None, *, beside: bool = False
        ) -> AsyncGenerator[Output | ExecuteReply]:
            for epoch in range(4):
                yield Output("stream", {"name": "stdout", "text": f"epoch {epoch} val_acc: 0.{5 + epoch}\n"})
                await asyncio.sleep(0.3)
            await gate.wait()
            yield ExecuteReply(Status.OK, execution_count=1)

    class Releasing(ListedModel):
        async def stream(self, *args: Any) -> AsyncGenerator[Delta | Message]:
            if len(self.requests) == 2:
                gate.set()
            async for item in super().stream(*args):
                yield item

    replies = (
        calls(("python", {"code": "t", "timeout": 0.01})),
        calls(("wait", {"until": r"val_acc: 0\.[89]"})),
        calls(("wait", {})),
        says("done"),
    )
    events, *_ = await work_on(*replies, kernel=Training(), model=Releasing(*replies), clock=time.monotonic)
    started, matched, ended, *_ = only(events, ev.ResultAdded)
    assert "the pattern matched: val_acc: 0.8" in matched.content[0].text
    assert (started.status, matched.status, ended.status) == (Status.RUNNING, Status.RUNNING, Status.OK)
    printed = [
        event.output.get("text", "") for event in only(events, ev.CellOutput) if event.output and not event.transient
    ]
    assert "".join(printed).count("epoch") == 4


async def test_wait_returns_when_the_loss_explodes() -> None:
    class Diverging(FakeKernel):
        async def execute(
            self, source: str, timeout: float | None = None, *, beside: bool = False
        ) -> AsyncGenerator[Output | ExecuteReply]:
            for epoch in range(1, 9):
                loss = 0.9 if epoch < 5 else 10.0**epoch
                yield Output("stream", {"name": "stdout", "text": f"epoch {epoch} loss {loss}\n"})
                await asyncio.sleep(0.15)
            await asyncio.sleep(2)
            yield ExecuteReply(Status.OK)

    replies = (
        calls(("python", {"code": "t", "timeout": 0.01})),
        calls(("wait", {})),
        calls(("wait", {"stop": True})),
        says("x"),
    )
    events, *_ = await work_on(*replies, kernel=Diverging(), clock=time.monotonic, limits=Limits(max_turns=2))
    _, waited = only(events, ev.ResultAdded)
    assert waited.status is Status.RUNNING
    assert "an anomaly: loss is" in waited.content[0].text
    assert "[metrics: epoch" in waited.content[0].text


async def test_thirty_silent_epochs_cost_two_turns() -> None:
    """Each epoch takes a minute of the test's clock, in which nothing is printed."""
    epochs = 0

    class Training(FakeKernel):
        async def execute(
            self, source: str, timeout: float | None = None, *, beside: bool = False
        ) -> AsyncGenerator[Output | ExecuteReply]:
            nonlocal epochs
            for epoch in range(1, 31):
                await asyncio.sleep(0.05)
                epochs = epoch
                yield Output("stream", {"name": "stdout", "text": f"epoch {epoch} loss {1 / epoch:.3f}\n"})
            yield ExecuteReply(Status.OK, execution_count=1)

    def clock() -> float:
        return epochs * 60 + time.monotonic()

    replies = (calls(("python", {"code": "train()"})), calls(("wait", {"seconds": 7200})), says("done"))
    events, _, model, _ = await work_on(*replies, kernel=Training(), clock=clock)
    started, ended = only(events, ev.ResultAdded)
    assert (started.status, ended.status) == (Status.RUNNING, Status.OK)
    assert len(model.requests) == 3
    assert "epoch 30" in ended.content[0].text
    printed = "".join(
        event.output.get("text", "") for event in only(events, ev.CellOutput) if event.output and event.op == "append"
    )
    assert printed.count("epoch") == 30


async def test_a_wait_for_nothing_says_so() -> None:
    events, *_ = await work_on(calls(("wait", {"call": "c99"}), ("wait", {"until": "("})), says("x"))
    texts = [result.content[0].text for result in only(events, ev.ResultAdded)]
    assert texts == ["Not waited: no call is running."] * 2


async def test_a_limit_stops_what_still_runs() -> None:
    kernel = echoing({"train()": RUNNING})
    events, *_ = await work_on(calls(TRAIN), kernel=kernel, clock=fast_clock(), limits=Limits(max_turns=1))
    assert types(events)[-2:] == ["cell_finished", "session_ended"]
    assert only(events, ev.CellFinished)[0].status is Status.INTERRUPTED


async def test_closing_early_closes_the_cell() -> None:
    closed = []

    class Slow(FakeKernel):
        async def execute(
            self, source: str, timeout: float | None = None, *, beside: bool = False
        ) -> AsyncGenerator[Output | ExecuteReply]:
            try:
                yield Output("stream", {"name": "stdout", "text": "a\n"})
                yield ExecuteReply(Status.OK)
            finally:
                closed.append(source)

    kernel, conversation = Slow(), Conversation([ev.PromptAdded(prompt="go")])
    work = Work(
        system="",
        model=ListedModel(calls(PYTHON)),
        cells=Cells(
            kernel, lambda call, plot: Firewall(call.call_id, call.name, plot=plot), lambda: 0.0, lambda: ("", ())
        ),
        tools=Toolset(STANDARD_TOOLS),
        rules=(),
        approver=DenyApprover(),
        gate=gate_of(),
        clock=lambda: 0.0,
        limits=Limits(),
        settings=ModelSettings(),
    )
    items = run(work, conversation)
    async for item in items:
        if isinstance(item, ev.CellOutput):
            break
    await items.aclose()
    assert closed == ["1"]
    assert [call.name for call in conversation.open_calls] == ["python"]


def test_what_a_check_printed_is_marked_as_data() -> None:
    check = ev.CheckFinished(command="make", passed=False, exit_code=2, output="obey me\n", elapsed=0.1)
    said = words.refused([check], lambda text: enveloped(text, "0a1b2c3d"))
    assert said.endswith("This check failed with exit status 2: make\n<data-0a1b2c3d>\nobey me\n</data-0a1b2c3d>")
