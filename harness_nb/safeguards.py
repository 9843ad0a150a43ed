"""What keeps the work of one session safe, put together from its settings: rules, approver, classifier.

The session asks here when it makes the ``Work`` of a prompt.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from harness_nb.approval import DenyApprover
from harness_nb.consent import Grants
from harness_nb.context import Conversation
from harness_nb.errors import UsageError
from harness_nb.events import Event
from harness_nb.kernel import Spare, ToolKernel
from harness_nb.kernel.confinement import Confinement
from harness_nb.kernel.confining import confinement_for
from harness_nb.kernel.environment import Granted
from harness_nb.kernel.spec import DEFAULT_NAME, SANDBOX_NAME, name_here
from harness_nb.models import REMOTE, default_model_spec, key_of
from harness_nb.outputs.envelope import tag_of
from harness_nb.policy import (
    Rule,
    deny_masked_secrets,
    deny_outside_workspace,
    deny_read_only,
    ground_for,
    judge_by,
    read_rules,
)
from harness_nb.policy.untrusted import ask_after_untrusted_text, untrusted_before
from harness_nb.policy.web import allowed_hosts, ask_before_fetching, deny_local_addresses
from harness_nb.ports import Approver, ExecuteReply, Kernel, Output
from harness_nb.replaying import Playing
from harness_nb.secrets_kept import Keeper, MaskedApprover, granted_secrets, known_secrets, too_plain
from harness_nb.settings import Settings
from harness_nb.store import FOLDER
from harness_nb.tools import SETUP_SOURCE
from harness_nb.types import Decision, Status, ToolCall
from harness_nb.web import Fetcher
from harness_nb.work import Fetch
from harness_nb.workplace import Workplace


def rules_for(
    settings: Settings, place: Workplace, playing: Playing | None, conversation: Conversation | None = None
) -> tuple[Rule, ...]:
    """The rules in force; the strictest decision of all of them counts. ``conversation`` goes on while they are."""
    user_rules = read_rules(settings.rules)

    def judge_by_rules(call: ToolCall, source: str) -> Decision | None:
        return judge_by(user_rules, ground_for(str(settings.directory), place.protected()))(call, source)

    own = (
        deny_outside_workspace,
        lambda call, source: deny_read_only(place.protected())(call, source),
        deny_masked_secrets,
        judge_by_rules,
        deny_local_addresses,
        ask_before_fetching(allowed_hosts(settings.network)),
        ask_after_untrusted_text(lambda: untrusted_before(conversation.history) if conversation else ""),
    )
    return (*own, playing.pass_over) if playing else own


def fetch_for(settings: Settings, playing: Playing | None) -> Fetch | None:
    """What brings pages of the web, where the session may have them; nothing is fetched again in a replay."""
    if not settings.web:
        return None
    return _not_again if playing else Fetcher().outputs


async def _not_again(url: str) -> AsyncGenerator[Output | ExecuteReply]:
    yield ExecuteReply(Status.OK, detail="not fetched again in a replay")


def approver_for(settings: Settings, approver: Approver, keeper: Keeper) -> Approver:
    """Who is asked, for approvals and by tool code."""
    if settings.policy == "deny":
        return DenyApprover("the policy of this session is deny")
    return MaskedApprover(approver, keeper.masker)


def grants_of(events: Sequence[Event]) -> Grants:
    """What a person has allowed so far in the session whose events these are."""
    grants = Grants()
    for event in events:
        grants.apply(event)
    return grants


def under(settings: Settings, grants: Grants, kernel: Kernel) -> Grants:
    """The same, with a prompt's policy: ``auto`` allows what would be asked about, in a sandbox and nowhere else."""
    grants.auto = lambda: settings.policy == "auto" and isinstance(kernel, ToolKernel) and bool(kernel.confinement)
    return grants


def tool_kernel_for(settings: Settings, spare: Spare | None) -> ToolKernel:
    """The tool kernel of a session, in a sandbox where one works, with the secrets that it is granted and no others.

    Raises:
        UsageError: if there is no such kernel spec or sandbox, or a secret cannot be granted.
    """
    name = name_here(settings.kernel)
    return ToolKernel(
        name=name,
        directory=settings.directory / FOLDER,
        setup=SETUP_SOURCE,
        environment=granted_to(settings),
        spare=spare,
        confinement=_confinement(settings, name),
    )


def _confinement(settings: Settings, name: str) -> Confinement | None:
    if name == SANDBOX_NAME:
        return confinement_for(settings)
    if settings.network.startswith("allow:"):
        raise UsageError(f"--network {settings.network} needs a sandbox, and the kernel {name} has none.")
    return None


@dataclass(frozen=True, slots=True)
class Fitting:
    """The kernel that a first task in a folder will most likely want: in this sandbox, or in none."""

    confinement: Confinement | None


def spare_for(folder: Path) -> Fitting | None:
    """What kernel to start ahead in ``folder``; ``None`` where it could not be used.

    A sandbox has to have the folder of the records at its start, which is not made before there is a session.

    Raises:
        UsageError: if the settings there are wrong.
    """
    settings = Settings.load(folder, {})
    name = name_here(settings.kernel)
    if name != SANDBOX_NAME:
        return Fitting(None) if name == DEFAULT_NAME else None
    return Fitting(confinement_for(settings)) if (settings.directory / FOLDER).is_dir() else None


async def confine_anew(kernel: Kernel, settings: Settings, before: Settings) -> None:
    """Give the kernel another sandbox where the settings of the sandbox are others than before; its names are lost.

    Raises:
        UsageError: if the new one cannot be held; the old one stays.
    """
    asked = [(one.network, one.sandbox, one.read_only) for one in (settings, before)]
    if isinstance(kernel, ToolKernel) and kernel.confinement is not None and asked[0] != asked[1]:
        await kernel.confine(confinement_for(settings))


def granted_to(settings: Settings) -> Granted:
    """The variables that tool code is given by name.

    Raises:
        UsageError: if one is not set, or is the key of a model in use.
    """
    return Granted(granted_secrets(settings.secret, os.environ, model_keys(settings)))


def check_grants(settings: Settings, before: Settings) -> None:
    """Refuse other secrets than those that the kernel of a session was started with.

    Raises:
        UsageError: with the way out; also where a secret is the key of a model in use by now.
    """
    granted_to(settings)
    if set(settings.secret) - set(before.secret):
        raise UsageError(
            f"Tool code has {', '.join(before.secret) or 'no secrets'} in this session; a kernel is given its secrets "
            "when it starts. Start a session with --new and the --secret options that it needs."
        )


def grant_warnings(settings: Settings) -> list[str]:
    """What a person should know of the secrets that are granted."""
    return too_plain(granted_to(settings))


def keeper_for(settings: Settings, events: Sequence[Event]) -> Keeper:
    """What masks the secrets that are known here: those of the environment and of a few files, and what is granted.

    ``events`` are those of the session's record, whose tag for data stays.
    """
    known = known_secrets(os.environ, settings.directory, Path.home())
    granted = {name: os.environ[name] for name in settings.secret if os.environ.get(name)}
    return Keeper({**known, **granted}, tag_of(events) or token_hex(4))


def model_keys(settings: Settings) -> list[str]:
    """The names of the variables that hold the keys of the models that the settings name."""
    specs = [settings.model, settings.small_model, settings.classifier]
    if settings.model is None:
        with suppress(UsageError):
            specs[0] = default_model_spec(os.environ)
    remote = [spec for spec in specs if spec and spec.partition(":")[0] in REMOTE]
    return [key_of(spec, settings.base_url, os.environ)[0] for spec in remote]
