"""The settings of a session: defaults < ``[tool.harness-nb]`` in pyproject.toml < environment < arguments of the call.

The session, the magics and the command line use it. Every source is validated in the same way, and an error names the
source and the field.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from harness_nb.errors import UsageError
from harness_nb.policy import read_rules
from harness_nb.ports import ModelSettings
from harness_nb.types import Frozen, Limits

THIS_CALL = frozenset({"directory", "session", "new", "fresh", "replay"})
"""Fields that are about one call: which session, where, recorded work or new. They are not part of the record."""

TABLES = frozenset({"prices", "rules", "sandbox"})
"""Fields that only a file can give, and that are not part of the record."""

PER_TASK = THIS_CALL | {"check", "max_turns", "max_cost", "max_minutes", "max_tokens"}
"""Fields that hold for one task; a session keeps the others for its next task, unless they are given anew."""

NotEmpty = Annotated[str, Field(min_length=1, pattern=r"\S")]
ENVIRONMENT_PREFIX = "HARNESS_NB_"


class SandboxSettings(Frozen):
    """The limits of the sandbox, from the table ``[tool.harness-nb.sandbox]``; sizes in 10^9 bytes.

    ``memory_gb`` is of each process, and of all together where control groups can be made; unset, it is four fifths of
    the machine's, and at least 8. ``temporary_gb`` is what /tmp, /dev/shm and the home folder hold, each;
    ``free_disk_gb`` has to stay free on the workspace's disk. ``readable`` are further folders that may be read.
    """

    memory_gb: float | None = Field(default=None, gt=0)
    processes: int = Field(default=2_000, ge=50)
    open_files: int = Field(default=4_096, ge=64)
    file_gb: float = Field(default=20, gt=0)
    cpu_minutes: float | None = Field(default=None, gt=0)
    temporary_gb: float = Field(default=2, gt=0)
    free_disk_gb: float = Field(default=1, ge=0)
    readable: tuple[NotEmpty, ...] = ()


class Settings(Frozen):
    """What a session works with. Minutes, US dollars, tokens; ``directory`` is the workspace, an existing folder.

    ``fresh`` passes over what is recorded, ``replay`` plays only what is recorded; with neither, recorded work is
    played where there is some, and else the model is asked. ``small_model`` is the spec of a cheaper model, for
    summaries; ``context_window`` is the model's, for servers that do not say it. ``prices`` are the user's own, US
    dollars per million tokens by the name or the spec of a model (see ``models.pricing.Rates``).

    ``kernel`` is a kernel spec, or ``auto``: ``harness-sandbox`` where a sandbox works, else ``harness-tools``.
    ``network`` is what tool code may reach from its sandbox, ``secret`` the names of variables of the environment that
    tool code is given. ``classifier`` is the spec of the model that judges calls; ``off`` for none. ``rules`` are the
    user's own, from the table ``[tool.harness-nb.policy]`` (see ``policy``), ``sandbox`` the limits of the sandbox.
    """

    directory: Path
    model: str | None = None
    base_url: str | None = None
    small_model: str | None = None
    kernel: str = "auto"
    max_turns: int | None = Field(default=50, ge=1)
    max_cost: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_minutes: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, gt=0)
    check: tuple[NotEmpty, ...] = ()
    check_minutes: float = Field(default=15, gt=0, allow_inf_nan=False)
    read_only: tuple[NotEmpty, ...] = ()
    policy: Literal["ask", "auto", "deny"] = "ask"
    max_output_tokens: int | None = Field(default=None, gt=0)
    temperature: float | None = Field(default=None, ge=0)
    reasoning_effort: str | None = None
    web: bool = False
    network: str = Field(default="off", pattern=r"^(on|off|allow:[^,\s]+(,[^,\s]+)*)$")
    secret: tuple[NotEmpty, ...] = ()
    classifier: str | None = None
    rules: dict[str, Any] = Field(default_factory=dict)
    sandbox: SandboxSettings = Field(default_factory=SandboxSettings)
    context_window: int | None = Field(default=None, ge=1000)
    prices: dict[str, Any] = Field(default_factory=dict)
    session: NotEmpty | None = None
    new: bool = False
    fresh: bool = False
    replay: bool = False

    @property
    def limits(self) -> Limits:
        """The limits of one prompt's work."""
        return Limits(
            max_turns=self.max_turns, max_cost=self.max_cost, max_minutes=self.max_minutes, max_tokens=self.max_tokens
        )

    def for_model(self, cache_key: str) -> ModelSettings:
        """What each request asks for beyond messages and tools."""
        return ModelSettings(
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            reasoning_effort=self.reasoning_effort,
            cache_key=cache_key,
            web_search=self.web,
        )

    @property
    def read_only_globs(self) -> tuple[str, ...]:
        """What tools may not write: as given, else the tests, where a check is set."""
        return self.read_only or (("tests/**",) if self.check else ())

    @property
    def options(self) -> dict[str, Any]:
        """What differs from the defaults, for the record; neither the workspace nor which session."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        return {name: value for name, value in values.items() if name not in THIS_CALL | TABLES}

    @classmethod
    def load(
        cls, directory: Path, overrides: Mapping[str, Any], environment: Mapping[str, str] | None = None
    ) -> Settings:
        """The settings for a workspace.

        ``overrides`` are the arguments of the call, by field name; ``dir`` in them names another workspace, relative to
        ``directory``. ``environment`` defaults to ``os.environ``.

        Raises:
            UsageError: if the workspace is not a folder, or a source has an unknown field or an unfit value.
        """
        given = dict(overrides)
        workspace = (directory / Path(given.pop("dir", None) or ".").expanduser()).resolve()
        if not workspace.is_dir():
            raise UsageError(f"The workspace {workspace} is not a folder. Create it, or name another one with --dir.")
        sources = [
            *_pyproject_tables(workspace),
            ("the environment", _from_environment(os.environ if environment is None else environment)),
            ("the options", given),
        ]
        values: dict[str, Any] = {}
        for source, table in sources:
            _validate(cls, source, table, workspace)
            values |= table
        if values.get("new") and values.get("session"):
            raise UsageError("--new starts a session and --session continues one; give one of them.")
        if given.get("fresh") and given.get("replay"):
            raise UsageError("--fresh works anew and --replay plays only what is recorded; give one of them.")
        if given.get("fresh") or given.get("replay"):
            values |= {"fresh": bool(given.get("fresh")), "replay": bool(given.get("replay"))}
        return cls.model_validate({**values, "directory": workspace})


def own_table(workspace: Path) -> dict[str, Any]:
    """``[tool.harness-nb]`` of the workspace's own pyproject.toml as it stands; empty where it cannot be read."""
    try:
        table = tomllib.loads((workspace / "pyproject.toml").read_text("utf-8")).get("tool", {}).get("harness-nb", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError, AttributeError):
        return {}
    return table if isinstance(table, dict) else {}


def _pyproject_tables(workspace: Path) -> list[tuple[str, dict[str, Any]]]:
    """``[tool.harness-nb]`` of the nearest pyproject.toml at or above the workspace."""
    for folder in (workspace, *workspace.parents):
        path = folder / "pyproject.toml"
        try:
            if not path.is_file():
                continue
            table = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("harness-nb", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise UsageError(f"{path} cannot be read: {error}") from error
        return [(f"[tool.harness-nb] in {path}", _fields(table))]
    return []


def _fields(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table of pyproject.toml by field name. ``policy`` is a word there, or the table of the rules, whose ``default``
    is that word.
    """
    fields = {key.replace("-", "_"): value for key, value in table.items()}
    if isinstance(rules := fields.get("policy"), dict):
        del fields["policy"]
        fields["rules"] = {key: value for key, value in rules.items() if key != "default"}
        if "default" in rules:
            fields["policy"] = rules["default"]
    return fields


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """``HARNESS_NB_MODEL`` and its like, for the fields that hold one value."""
    single = [
        name for name in Settings.model_fields if name not in THIS_CALL | TABLES | {"check", "read_only", "secret"}
    ]
    variables = {name: environment.get(ENVIRONMENT_PREFIX + name.upper(), "") for name in single}
    return {name: value for name, value in variables.items() if value}


def _validate(cls: type[Settings], source: str, table: Mapping[str, Any], workspace: Path) -> None:
    try:
        cls.model_validate({**table, "directory": workspace})
    except ValidationError as error:
        details = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise UsageError(f"A setting in {source} is wrong: {details}") from error
    try:
        read_rules(table.get("rules", {}))
    except UsageError as error:
        raise UsageError(f"A setting in {source} is wrong: {error}") from error
