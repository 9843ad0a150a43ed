"""What goes when a conversation is compacted, and the text that stands for it: pure, over events."""

from __future__ import annotations

from typing import Any

import pytest

from harness_nb import events as ev
from harness_nb.context import Conversation
from harness_nb.context.compaction import LEVELS, Compaction, Kept, plan_compaction, read_skills, window_in
from harness_nb.context.transcript import NEWEST, list_calls, shorten, write_transcript
from harness_nb.types import ImagePart, Message, Status, TextPart, ToolCall, Usage, text_content

Events = list[ev.Event]


def step(*calls: tuple[str, str, dict[str, Any], str], text: str = "", status: Status = Status.OK) -> Events:
    """A reply with calls (id, tool, arguments, result), and their results."""
    made = tuple(ToolCall(call_id=call_id, name=name, arguments=arguments) for call_id, name, arguments, _ in calls)
    message = Message(
        role="assistant", content=text_content(text) if text else (), tool_calls=made, usage=Usage(input_tokens=9)
    )
    replied = ev.ModelReplied(turn=1, message=message)
    return [
        replied,
        *(
            ev.ResultAdded(call_id=call_id, name=name, status=status, content=text_content(result))
            for call_id, name, _, result in calls
        ),
    ]


def bash(call_id: str, command: str, result: str = "done") -> Events:
    return step((call_id, "bash", {"command": command}, result))


def long(steps: int, chars: int = 3000, prompt: str = "Count {it}.") -> Conversation:
    events: Events = [ev.PromptAdded(prompt=prompt)]
    for number in range(steps):
        events += bash(f"c{number}", f"count {number}", f"result {number} " + "x" * chars)
    return Conversation(events)


def compacted(conversation: Conversation, level: int = 1, space: int = 8000, summary: str = "SUMMED UP") -> Compaction:
    plan = plan_compaction(conversation, level, space)
    assert plan is not None
    text = plan.text(summary, Kept("df (DataFrame, 3 x 2)", ["c7 (python)"]))
    conversation.apply(ev.ContextCompacted(summary=text, dropped=plan.dropped))
    return plan


def is_valid(messages: tuple[Message, ...]) -> bool:
    """Whether each result follows the reply with its call, and each call has its result."""
    calls = [call.call_id for message in messages for call in message.tool_calls]
    results = [message.call_id for message in messages if message.role == "tool"]
    return calls == results and messages[0].role == "user"


@pytest.mark.parametrize("level", range(1, LEVELS + 1))
@pytest.mark.parametrize("space", [500, 4000, 8000, 20_000])
def test_a_call_and_its_result_are_never_parted(level: int, space: int) -> None:
    conversation = long(7)
    compacted(conversation, level, space)
    assert is_valid(conversation.messages)
    again = conversation.messages
    conversation.apply(ev.ResultAdded(call_id="c1", name="bash", status=Status.OK, content=text_content("late")))
    assert conversation.messages == again


def test_each_level_keeps_less_and_the_last_nothing_but_what_stands_for_it() -> None:
    kept = []
    for level in range(1, LEVELS + 1):
        conversation = long(20)
        compacted(conversation, level, space=16_000)
        kept.append(len(conversation.messages))
    assert kept[0] > kept[1] > kept[2] == 1


def test_what_the_person_said_stays_word_for_word() -> None:
    words = "  Use {braces}, $5 and ```ticks```\n\n<task> & keep this\n"
    conversation = long(9, prompt=words)
    compacted(conversation)
    assert words in conversation.messages[0].text
    conversation.apply(ev.PromptAdded(prompt="And now the second."))
    for event in [event for number in range(9) for event in bash(f"d{number}", "go on", "y" * 3000)]:
        conversation.apply(event)
    compacted(conversation)
    head = conversation.messages[0].text
    assert "<task>\nAnd now the second.\n</task>" in head
    assert f"<earlier_task>\n{words}\n</earlier_task>" in head
    assert "the last of them is the one to work on" in head


def test_a_prompt_that_has_just_come_is_kept_as_a_message() -> None:
    conversation = long(9)
    conversation.apply(ev.PromptAdded(prompt="Now the second."))
    conversation.apply(ev.Nudged(reason="r", text="A word."))
    compacted(conversation, LEVELS)
    head, prompt, word = conversation.messages
    assert (prompt.text, word.text) == ("Now the second.", "A word.")
    assert "<earlier_task>\nCount {it}.\n</earlier_task>" in head.text
    assert "the one to work on follows below" in head.text and "latest messages follow" in head.text


def test_finished_calls_are_listed_with_how_they_ended() -> None:
    events: Events = [ev.PromptAdded(prompt="go")]
    events += step(
        ("c1", "python", {"code": "import os\nos.listdir()"}, "[]"), ("c2", "bash", {"command": "make"}, "no")
    )
    events += step(("c3", "write_file", {"path": "a.txt", "content": "x" * 9000}, "BLOCKED"), status=Status.DENIED)
    conversation = Conversation(events)
    compacted(conversation, LEVELS)
    head = conversation.messages[0].text
    assert "- c1 python (ok): os.listdir() … (2 lines)\n- c2 bash (ok): make\n- c3 write_file (denied): a.txt" in head
    assert "df (DataFrame, 3 x 2)" in head and "c7 (python)" in head and "SUMMED UP" in head
    assert list_calls(conversation.history, 1) == ["- 2 earlier calls", "- c3 write_file (denied): a.txt"]


def test_a_second_compaction_takes_the_first_one_in_and_forgets_no_call() -> None:
    conversation = long(9)
    compacted(conversation, summary="FIRST")
    for event in [event for number in range(9) for event in bash(f"d{number}", f"more {number}", "y" * 3000)]:
        conversation.apply(event)
    plan = plan_compaction(conversation, 1, 8000)
    assert plan is not None
    asked = plan.request(100_000)
    assert "[the hand-over of what came before]\nFIRST\n\n[" in asked and "Calls made so far" not in asked
    assert "The agent keeps the messages behind it" in asked
    assert "# Where the work stood before the messages below\n\nFIRST" in conversation.messages[0].text
    compacted(conversation, summary="SECOND")
    head, *rest = conversation.messages
    assert "SECOND" in head.text and "- c0 bash" in head.text and "- d0 bash" in head.text
    assert is_valid(conversation.messages)
    assert len(rest) < 18
    assert len(conversation.history) == 1 + 2 * 18


def test_the_text_of_a_skill_that_was_read_is_kept() -> None:
    path = ".agents/skills/eda/SKILL.md"
    events: Events = [ev.PromptAdded(prompt="go"), *bash("c0", "ls .agents/skills/*/SKILL.md", path)]
    events += step(("c1", "read_file", {"path": path}, "1\tAlways plot first."))
    events += step(("c2", "read_file", {"path": path}, "not there"), status=Status.ERROR)
    events += bash("c3", f"cat {path}; cat other/SKILL.md", "Always plot twice.")
    assert read_skills(Conversation(events).history) == {path: "Always plot twice."}
    conversation = Conversation(events)
    compacted(conversation, 2, space=100)
    assert f"<skill path={path!r}>\nAlways plot twice.\n</skill>" in conversation.messages[0].text
    conversation = Conversation([*events, *bash("c4", f"cat {path}", "Always plot. " * 999)])
    compacted(conversation, LEVELS)
    assert f"- {path}: read it again" in conversation.messages[0].text
    assert "Always plot." not in conversation.messages[0].text


def test_the_plan_stays_until_the_next_task() -> None:
    conversation = long(9)
    steps = ({"step": "look", "status": "completed"}, {"step": "fit", "status": "pending"})
    conversation.apply(ev.PlanUpdated(steps=steps))
    compacted(conversation)
    assert "- [x] look\n- [ ] fit" in conversation.messages[0].text
    conversation.apply(ev.PromptAdded(prompt="another"))
    compacted(conversation, LEVELS)
    assert "- [x] look" not in conversation.messages[0].text


def test_a_fold_from_the_journal_gives_the_same_history() -> None:
    events: Events = [ev.PromptAdded(prompt="go"), *bash("c1", "a"), *bash("c2", "b")]
    events += [ev.ContextCompacted(summary="all of it", dropped=3), *bash("c3", "c")]
    events += [ev.ContextCompacted(summary="once more", dropped=3), ev.Nudged(reason="r", text="hm")]
    again = [ev.parse_event(event.model_dump(mode="json")) for event in events]
    for conversation in (Conversation(events), Conversation(again)):
        assert [message.text for message in conversation.messages] == ["once more", "", "done", "hm"]
        assert conversation.messages[1].tool_calls[0].call_id == "c3"
        assert conversation.messages[1].usage is None


def test_a_record_that_parts_a_call_from_its_result_is_mended() -> None:
    conversation = Conversation([ev.PromptAdded(prompt="go"), *bash("c1", "a"), *bash("c2", "b")])
    conversation.apply(ev.ContextCompacted(summary="s", dropped=2))
    assert [message.role for message in conversation.messages] == ["user", "assistant", "tool"]
    conversation.apply(ev.ContextCompacted(summary="t", dropped=99))
    assert [message.text for message in conversation.messages] == ["t"]


def test_nothing_is_dropped_where_that_frees_nothing() -> None:
    assert plan_compaction(Conversation([ev.PromptAdded(prompt="x" * 99_000)]), LEVELS, 1000) is None
    conversation = Conversation([ev.PromptAdded(prompt="go"), *bash("c1", "a")])
    compacted(conversation, 1, space=100_000)
    assert len(conversation.messages) == 1
    assert plan_compaction(conversation, 2, 1000) is None
    compacted(conversation, LEVELS, summary="shorter")
    (head,) = conversation.messages
    assert "<task>\ngo\n</task>" in head.text and "- c1 bash (ok): a" in head.text and "shorter" in head.text


def test_old_results_are_shortened_before_new_ones() -> None:
    conversation = long(30, chars=5000)
    text = write_transcript(conversation.messages, [0], 60_000)
    assert len(text) <= 60_000
    assert text.startswith("[the person]\nCount {it}.\n\n[call c0: bash]\ncount 0\n\n[result of c0: ok]\nresult 0")
    pieces = text.split("\n\n")
    results = [len(piece) for piece in pieces if piece.startswith("[result")]
    assert min(results[-NEWEST // 2 :]) > 2 * max(results[: -NEWEST // 2])
    tiny = write_transcript(conversation.messages, [0], 1000)
    assert len(tiny) < 1200 and tiny.startswith("[") and "earlier pieces are left out here]" in tiny
    assert "[result of c29: ok]" in tiny


def test_pictures_are_named_and_harness_and_person_are_told_apart() -> None:
    picture = (TextPart(text="see"), ImagePart(media_type="image/png", data="QUJD"))
    events: Events = [ev.PromptAdded(prompt="go"), *bash("c1", "a"), ev.Nudged(reason="r", text="hm")]
    events[2] = events[2].model_copy(update={"content": picture})
    text = write_transcript(Conversation(events).messages, [0], 9000)
    assert "see\n[a picture]" in text and "QUJD" not in text
    assert text.endswith("[the harness]\nhm")


def test_a_text_is_shortened_in_its_middle() -> None:
    text = shorten("a" * 600 + "b" * 600, 300)
    assert text.startswith("a" * 150) and text.endswith("b" * 150) and "900 characters left out" in text
    assert shorten("short", 300) == "short"


@pytest.mark.parametrize(
    ("said", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, you requested 9011 tokens", 8192),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_048_576),
        ("Prompt contains 40000 tokens, too large for model with 32768 maximum context length", 32_768),
        ("This model's maximum prompt length is 131,072 but the request contains 537812 tokens.", 131_072),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 200_000),
        ("Your input exceeds the context window of this model.", None),
        ("The context window of model-0613 is exceeded", None),
    ],
)
def test_a_window_is_read_from_a_complaint(said: str, window: int | None) -> None:
    assert window_in(said) == window
