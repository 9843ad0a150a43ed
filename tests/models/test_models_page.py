"""docs/models.md against the code: specs, keys, options, quirks, hosts, rates, numbers."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

from harness_nb.models import REMOTE, SPEC_FORMS
from harness_nb.models.address import KEY_NAMES, find_key
from harness_nb.models.endpoint import READ_TIMEOUT
from harness_nb.models.failures import TRANSIENT_STATUSES
from harness_nb.models.pricing import Rates, read_rates
from harness_nb.models.quirks import CHAT, CHAT_HOSTS, RESPONSES, Quirks
from harness_nb.models.retry import LONGEST_WAIT, RETRIES
from harness_nb.options import make_options

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def table(head: str) -> list[list[str]]:
    """The rows of the table whose head begins so."""
    match = re.search(rf"^\| {re.escape(head)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert match, f"docs/models.md has no table of {head!r}"
    return [[column.strip() for column in line.strip("|").split("|")] for line in match[1].splitlines()]


def words(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_the_specs_are_those_of_the_code() -> None:
    named = {word.partition(":")[0] for word in words(PAGE) if re.fullmatch(r"[a-z]+:[A-Z/]+(\.json)?", word)}
    assert named == {form.partition(":")[0].strip() for form in SPEC_FORMS.splitlines()} >= set(REMOTE)


@pytest.mark.parametrize("row", table("server"), ids=lambda row: row[0])
def test_each_server_has_its_key(row: list[str]) -> None:
    _, spec, base_url, key = (words(column) for column in row)
    if not base_url:
        kinds = {word.partition(":")[0] for word in spec}
        assert key == [f"{REMOTE[kind][0]}_API_KEY" for kind in kinds]
    elif key:
        assert find_key(base_url[0], {key[0]: "a", "OPENAI_API_KEY": "b"}) == ("a", key[0])
    else:
        assert base_url[0].startswith("http://localhost:")


def test_all_keys_are_named() -> None:
    assert set(KEY_NAMES.values()) <= {word for row in table("server") for word in words(row[3])}


def test_the_options_are_those_of_the_commands() -> None:
    options = {name for option in make_options() if isinstance(option, click.Option) for name in option.opts}
    listed = [words(row[0])[0] for row in table("option")]
    servers = {"--enable-auto-tool-choice", "--tool-call-parser", "--jinja"}
    assert set(listed) <= options
    assert set(re.findall(r"(?<![-\w])--[a-z][a-z-]*", PAGE)) - servers <= options


def test_the_quirks_and_their_defaults_are_those_of_the_code() -> None:
    told = {words(row[0])[0]: row[2] for row in table("quirk")}
    assert list(told) and set(told) == {field.name for field in fields(Quirks)}
    for name, default in told.items():
        value, chat = getattr(RESPONSES, name), getattr(CHAT, name)
        if default == "`openai:` only":
            assert (value, chat) == (True, False)
        else:
            assert value == chat
            assert default.strip("`") == {True: "yes", False: "no", None: "none"}.get(value, str(value)), name


def test_the_hosts_are_those_of_the_code() -> None:
    told = {host: set(words(row[1])) for row in table("host") for host in words(row[0])}
    assert told == {host: set(change) for host, change in CHAT_HOSTS.items()}


def test_the_example_of_prices_is_read_and_has_every_field() -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert example
    rates = read_rates(tomllib.loads(example[1])["tool"]["harness-nb"]["prices"])
    assert rates["my-deployment"].model_fields_set == set(Rates.model_fields)


def test_the_numbers_are_those_of_the_code() -> None:
    statuses = ", ".join(map(str, sorted(TRANSIENT_STATUSES)))
    assert f"| {statuses}, 5xx, a lost connection, {READ_TIMEOUT:.0f} s without a byte | tried again" in PAGE
    assert f"at most {RETRIES} times |" in PAGE
    assert f"up to {LONGEST_WAIT:.0f} s;" in PAGE
