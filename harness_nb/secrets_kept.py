"""What a session keeps to itself: which values are secrets, which of them tool code is given, and masks for the rest.

The session reads the values once it is opened, and lets everything that is recorded, shown or sent to a model pass
through one ``Keeper``. What masks look like, and what they cannot hide, is in the page on secrets. It reads the
environment and a few files; it must not import a kernel library or IPython.
"""

from __future__ import annotations

import configparser
import netrc
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from harness_nb import events as ev
from harness_nb.errors import UsageError
from harness_nb.outputs import Firewall, Sink
from harness_nb.outputs.masking import Deltas, Masker
from harness_nb.outputs.secret_forms import is_trivial
from harness_nb.ports import Approver, CallDelta, Delta, Judge, Question, ReasoningDelta, TextDelta
from harness_nb.types import Approval, Decision, Judgement, ToolCall, Usage

SECRET_NAME = re.compile(
    r"API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|(^|_)KEY$|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|_AUTH$|_PAT$|_DSN$"
    r"|DATABASE_URL$|CONNECTION_STRING$",
    re.IGNORECASE,
)
"""Names of variables whose values are taken for secrets."""

_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*?)\s*\Z")
_MOST_BYTES = 200_000

Item = ev.Event | Delta


def known_secrets(environment: Mapping[str, str], workspace: Path, home: Path | None = None) -> dict[str, str]:
    """The values that are masked, by the name that the mask says.

    They are those of variables of ``environment`` and of ``.env`` in the workspace whose names look like secrets, the
    passwords within URLs there, and the passwords in ``.netrc`` and ``.aws/credentials`` of ``home``. Paths, words
    and short values are left out.
    """
    found: dict[str, str] = {}
    folder = Path.home() if home is None else home
    sources = [environment.items(), _env_file(workspace / ".env"), _netrc(folder / ".netrc")]
    for name, value in [pair for source in [*sources, _aws(folder / ".aws" / "credentials")] for pair in source]:
        if (secret := _secret_in(name, value)) and secret not in found.values():
            found.setdefault(name, secret)
    return found


def granted_secrets(names: Iterable[str], environment: Mapping[str, str], keys: Iterable[str] = ()) -> dict[str, str]:
    """The variables that tool code is given, by name. ``keys`` are the variables that hold the keys of models in use.

    Raises:
        UsageError: if one is not set, or is the key of a model; the text names it and the way out.
    """
    granted: dict[str, str] = {}
    values = {environment[key].strip(): key for key in keys if environment.get(key, "").strip()}
    for name in names:
        value = environment.get(name, "")
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            told = name.partition("=")[0][:60]
            raise UsageError(f"--secret takes the name of an environment variable, not its value; {told!r} is none.")
        if not value:
            raise UsageError(f"--secret {name}: there is no such variable in the environment, or it is empty. Set it.")
        if key := name if name in keys else values.get(value.strip(), ""):
            raise UsageError(
                f"--secret {name}: {key} is the key of a model in use, and tool code is never given that. Make a key "
                f"of its own for tool code, and grant it under another name."
            )
        granted[name] = value
    return granted


def too_plain(granted: Mapping[str, str]) -> list[str]:
    """Warnings about granted values that cannot be masked: they would be found in innocent text."""
    return [
        f"The value of {name} is too short or too common to be masked: if tool code prints it, it is in the record."
        for name, value in granted.items()
        if is_trivial(value)
    ]


class Keeper:
    """Masks what a session records and shows. The work itself goes on with the true texts.

    ``masker`` is for the firewall, and for what is sent to a model; ``tag`` marks for a model what is data.
    """

    def __init__(self, known: Mapping[str, str], tag: str = "") -> None:
        self.masker = Masker(known)
        self.tag = tag
        self._streams: dict[tuple[type[Delta], str], Deltas] = {}

    def judge(self, judge: Judge | None) -> Judge | None:
        """The classifier, which is not told secrets either."""
        return None if judge is None else MaskedJudge(judge, self.masker)

    def firewall(self, call: ToolCall, sink: Sink, plot: bool) -> Firewall:
        """What the outputs of a call pass through; with a plot of its metrics, if ``plot``."""
        return Firewall(
            call.call_id, call.name, sink=sink, masker=self.masker, tag=self.tag, plot=plot, stopwatch=time.perf_counter
        )

    def event(self, event: ev.Event) -> ev.Event:
        """The event as it is recorded and shown. Outputs of cells come masked from the firewall.

        What only its provider understands of a reply is left out where it holds a secret: a provider that signs its
        items would refuse a changed one.
        """
        if isinstance(event, ev.CellOutput):
            return event
        value = event.model_dump(mode="json")
        masked = self.masker.mask_json(value)
        if masked == value:
            return event
        if isinstance(event, ev.ModelReplied):
            masked["message"] |= {"provider_items": [], "provider": None}
        return type(event).model_validate(masked)

    async def told(
        self, items: AsyncGenerator[Item], follow: Callable[[Item], Item] | None = None
    ) -> AsyncGenerator[Item]:
        """What is recorded and shown of the loop's items; ``follow`` puts others in their places first."""
        async with aclosing(items):
            async for item in items:
                for told in self.items(follow(item) if follow else item):
                    yield told

    def items(self, item: Item) -> Iterator[Item]:
        """What is recorded and shown of an item of the loop: text that streams in waits for the end of its word."""
        if isinstance(item, TextDelta | ReasoningDelta | CallDelta):
            key = (type(item), item.name if isinstance(item, CallDelta) else "")
            if key not in self._streams:
                yield from self._rest()
            if text := self._streams.setdefault(key, Deltas(self.masker)).feed(item.text):
                yield _delta(key, text)
            return
        yield from self._rest()
        yield item

    def _rest(self) -> Iterator[Item]:
        streams, self._streams = self._streams, {}
        for key, stream in streams.items():
            if text := stream.flush():
                yield _delta(key, text)

    async def checks(self, checks: AsyncGenerator[ev.CheckFinished]) -> AsyncGenerator[ev.CheckFinished]:
        """The results of checks, masked: the model gets them, too."""
        async for check in checks:
            yield check.model_copy(update={"output": self.masker.mask(check.output)})


class MaskedApprover:
    """Shows a person what is asked for with masks; what the person is shown may be kept in a notebook."""

    def __init__(self, approver: Approver, masker: Masker) -> None:
        self._approver = approver
        self._masker = masker

    async def ask(self, call: ToolCall, source: str, decision: Decision) -> Approval:
        """See ``ports.Approver``."""
        told = ToolCall.model_validate(self._masker.mask_json(call.model_dump(mode="json")))
        reason = self._masker.mask(decision.reason)
        return await self._approver.ask(told, self._masker.mask(source), decision.model_copy(update={"reason": reason}))

    @property
    def can_answer(self) -> bool:
        """See ``ports.Answers``."""
        return self._approver.can_answer

    async def answer(self, question: str, *, secret: bool) -> str | None:
        """See ``ports.Answers``."""
        return await self._approver.answer(self._masker.mask(question), secret=secret)


class MaskedJudge:
    """Asks a classifier without telling it secrets."""

    def __init__(self, judge: Judge, masker: Masker) -> None:
        self._judge = judge
        self._masker = masker
        self.name = judge.name

    async def judge(self, question: Question) -> tuple[Judgement, Usage]:
        """See ``ports.Judge``."""
        mask = self._masker
        told = Question(
            call=ToolCall.model_validate(mask.mask_json(question.call.model_dump(mode="json"))),
            source=mask.mask(question.source),
            words=[mask.mask(words) for words in question.words],
            workspace=question.workspace,
            untrusted=question.untrusted,
        )
        return await self._judge.judge(told)

    async def aclose(self) -> None:
        """See ``ports.Judge``."""
        await self._judge.aclose()


def _delta(key: tuple[type[Delta], str], text: str) -> Delta:
    kind, name = key
    if kind is CallDelta:
        return CallDelta(name, text)
    return ReasoningDelta(text) if kind is ReasoningDelta else TextDelta(text)


def _secret_in(name: str, value: str) -> str:
    """The secret in the value of a variable, if there is one: itself, or the password within a URL."""
    plain = value.strip()
    with suppress(ValueError):
        if "://" in plain and (password := urlsplit(plain).password):
            return "" if is_trivial(unquote(password)) else unquote(password)
    if not SECRET_NAME.search(name) or is_trivial(plain) or "://" in plain[:12] or _is_path(plain):
        return ""
    return "" if plain.isdecimal() and len(plain) < 16 else plain


def _is_path(value: str) -> bool:
    begins_so = value.startswith(("/", "~", "./", "../")) or re.match(r"[A-Za-z]:\\", value)
    return bool(begins_so) and (value.count("/") + value.count("\\") > 1 or Path(value).expanduser().exists())


def _env_file(path: Path) -> Iterator[tuple[str, str]]:
    """The variables that a ``.env`` file sets."""
    for line in _text(path).splitlines():
        if (match := _LINE.match(line)) and not line.lstrip().startswith("#"):
            value = match["value"]
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            yield match["name"], value[1:-1] if quoted else value.split(" #")[0].strip()


def _netrc(path: Path) -> Iterator[tuple[str, str]]:
    """The passwords of a ``.netrc`` file, named by their hosts."""
    with suppress(OSError, ValueError, netrc.NetrcParseError):
        if path.is_file():
            for host, (_, _, password) in netrc.netrc(str(path)).hosts.items():
                yield f"PASSWORD of {host} in .netrc", password or ""


def _aws(path: Path) -> Iterator[tuple[str, str]]:
    """The secret keys of a file of AWS's command line, named by their profiles."""
    parser = configparser.RawConfigParser(strict=False)
    with suppress(configparser.Error):
        parser.read_string(_text(path))
        for profile in parser.sections():
            for field in ("aws_secret_access_key", "aws_session_token"):
                yield f"{field.upper()} of {profile}", parser.get(profile, field, fallback="")


def _text(path: Path) -> str:
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            return path.read_text("utf-8", errors="replace")
    return ""
