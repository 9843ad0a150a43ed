"""The system prompt, the skills, and the conversation as a fold."""

from __future__ import annotations

from harness_nb import events as ev
from harness_nb.context import Conversation, Skill, Surroundings, build, parse_skill, system_prompt, words
from harness_nb.types import Message, Status, ToolCall, text_content

SURROUNDINGS = Surroundings(
    environment={"Python": "3.11"},
    instructions="Use tabs.",
    skills=(Skill("plotting", "How to plot", ".agents/skills/plotting/SKILL.md"),),
    read_only=("tests/**",),
    checks=("make check",),
)


def reply(*calls: str) -> ev.ModelReplied:
    made = tuple(ToolCall(call_id=call_id, name="bash", arguments={"command": "ls"}) for call_id in calls)
    return ev.ModelReplied(turn=1, message=Message(role="assistant", tool_calls=made))


def result(call_id: str, text: str = "done") -> ev.ResultAdded:
    return ev.ResultAdded(call_id=call_id, name="bash", status=Status.OK, content=text_content(text))


def test_the_prompt_has_its_sections() -> None:
    prompt = system_prompt(SURROUNDINGS)
    for wanted in (
        "Use tabs.",
        "- Python: 3.11",
        "tests/**",
        "`make check`",
        "plotting: How to plot (.agents/skills/plotting/SKILL.md)",
    ):
        assert wanted in prompt
    assert "AGENTS.md" not in system_prompt(Surroundings(environment={}))


def test_the_prefix_is_the_same_for_the_same_values() -> None:
    first = build(system_prompt(SURROUNDINGS), Conversation([ev.PromptAdded(prompt="a")]))
    second = build(system_prompt(SURROUNDINGS), Conversation([ev.PromptAdded(prompt="a"), reply()]))
    assert [m.model_dump_json() for m in first] == [m.model_dump_json() for m in second[: len(first)]]


def test_a_long_agents_md_is_cut_visibly() -> None:
    prompt = system_prompt(Surroundings(environment={}, instructions="ä" * 40_000))
    assert "80,000 bytes" in prompt
    assert len(prompt.encode()) < 40_000


def test_skills_are_read_leniently() -> None:
    good = "---\nname: eda\ndescription: Look at data.\n---\nbody"
    assert parse_skill(good, "eda", "x")[0] == Skill("eda", "Look at data.", "x")
    skill, warning = parse_skill(good, "other", "x")
    assert skill is not None and warning is not None and "differs" in warning
    colon = "---\nname: eda\ndescription: Use when: data is new\n---\n"
    assert parse_skill(colon, "eda", "x")[0] == Skill("eda", "Use when: data is new", "x")
    for bad in ("no front matter", "---\nname: eda\n---\n", "---\n[1, 2\n---\n", "---\nname: x"):
        skill, warning = parse_skill(bad, "eda", "x")
        assert skill is None and warning is not None


def test_the_prompt_reaches_the_model_byte_for_byte() -> None:
    prompt = "Use {braces}, $5, $$\\LaTeX$$, ```three``` and `ticks`\n\n  indented\t\n"
    messages = build("s", Conversation([ev.PromptAdded(prompt=prompt)]))
    assert messages[-1].text == prompt


def test_the_conversation_is_a_fold() -> None:
    events: list[ev.Event] = [
        ev.PromptAdded(prompt="go"),
        reply("a", "b"),
        result("a"),
        result("b"),
        ev.Nudged(reason="r", text="hm"),
    ]
    assert [message.role for message in Conversation(events).messages] == ["user", "assistant", "tool", "tool", "user"]


def test_a_call_without_result_is_repaired_and_a_second_result_is_ignored() -> None:
    conversation = Conversation([ev.PromptAdded(prompt="go"), reply("a", "b"), result("a"), result("a", "again")])
    assert [call.call_id for call in conversation.open_calls] == ["b"]
    conversation.apply(ev.PromptAdded(prompt="go on"))
    tools = [message for message in conversation.messages if message.role == "tool"]
    assert [(message.call_id, message.status) for message in tools] == [("a", Status.OK), ("b", Status.UNKNOWN)]
    assert conversation.messages[-1].text == "go on"
    assert not conversation.open_calls


def test_a_fork_is_told_behind_which_step_it_goes_on_and_what_its_kernel_has() -> None:
    names = [{"name": "df", "type": "DataFrame", "size": "3 x 2", "cell": 2}]
    assert words.rebuilt_for_fork(4, 2, [], names) == (
        "The session goes on behind step 4: what was done after it does not count. The files are as they were then, "
        "and the kernel was rebuilt by running 2 earlier python cells again. It has df (DataFrame, 3 x 2)."
    )
    assert words.rebuilt_for_fork(1, 0, [], []).endswith("is a fresh one, for no python cell had been run by then.")


def test_names_are_said_to_be_lost_only_where_there_were_some() -> None:
    assert "lost" not in words.resumed([])
    assert "all names and imports are lost: x (int)" in words.resumed([{"name": "x", "type": "int"}])
    assert words.resumed([], ["c3"]).endswith("The outcome of c3 is unknown: look before you repeat it.")
