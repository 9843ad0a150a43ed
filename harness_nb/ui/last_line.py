"""The last line of a ``%%agent`` cell: how it stands, turns, tokens, cost, time, the session notebook. Pure."""

from __future__ import annotations

from harness_nb.events import SessionEnded, SessionStarted
from harness_nb.notebook.prose import noted
from harness_nb.types import Usage
from harness_nb.ui import html
from harness_nb.ui.html import Link
from harness_nb.ui.publish import Bundle

_ENDINGS = {
    "finished": ("✓", "finished", html.GREEN),
    "limit": ("■", "stopped", html.AMBER),
    "rejected": ("✗", "not accepted", html.RED),
    "denied": ("⊘", "stopped", html.AMBER),
    "model_error": ("✗", "the model failed", html.RED),
    "kernel_error": ("✗", "the tool kernel failed", html.RED),
    "interrupted": ("■", "interrupted", html.AMBER),
}


def ended_line(event: SessionEnded, checks: int, link: Link | None) -> Bundle:
    """The line that stays. ``checks`` is the number of checks that passed."""
    sign, words, colour = _ENDINGS[event.reason]
    if event.text and event.reason != "interrupted":
        words += f": {event.text}"
    facts = [f"{checks} check{'s' if checks > 1 else ''} passed"] if checks else []
    if event.turns:
        facts += [count_turns(event.turns), *usage_words(event.usage)]
    facts += [duration(event.elapsed)]
    return html.last_line(sign, words, facts, colour, link)


def running_line(
    activity: str, busy: float, turn: int, elapsed: float, usage: Usage | None, link: Link | None
) -> Bundle:
    """The line while it works. ``busy`` and ``elapsed`` are seconds: of this activity, and in all."""
    words = activity + (f" {duration(int(busy))}" if busy >= 2 else " …")
    facts = [f"turn {turn}"] if turn else []
    if usage is not None and usage.total_tokens:
        facts += usage_words(usage)
    facts += [duration(int(elapsed))] if elapsed >= 1 else []
    return html.last_line("●", words, facts, html.BLUE, link)


def usage_words(usage: Usage) -> list[str]:
    """Tokens and cost; what the provider did not say is unknown."""
    if usage.input_tokens is None and usage.output_tokens is None:
        return ["tokens unknown"]
    read = noted((usage.cached_input_tokens, "cached"), (usage.cache_write_tokens, "written to the cache"))
    thought = noted((usage.reasoning_tokens, "reasoning"))
    tokens = f"{usage.input_tokens or 0:,} tokens in{read}, {usage.output_tokens or 0:,} out{thought}"
    searches = [f"{usage.searches:,} search{'' if usage.searches == 1 else 'es'}"] if usage.searches else []
    return [tokens, *searches, dollars(usage.cost_usd)]


def dollars(cost: float | None) -> str:
    """``$0.0123``, ``$0`` or ``cost unknown``."""
    if cost is None:
        return "cost unknown"
    return f"${cost:.4f}" if cost else "$0"


def judging_words(event: SessionStarted) -> str:
    """Which classifier judges calls, as a line; empty where there is none."""
    words = str(event.environment.get("Classifier", "none"))
    return "" if words.startswith("none") else f"Calls are judged by {words}."


def count_turns(turns: int) -> str:
    """``1 turn``, ``2 turns``."""
    return f"{turns} turn{'' if turns == 1 else 's'}"


def duration(seconds: float) -> str:
    """``< 0.1 s``, ``0.4 s``, ``12 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if 0 < seconds < 0.05:
        return "< 0.1 s"
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
