"""Secrets in text: known values in all their forms, credentials of well-known kinds, and what must be left alone."""

from __future__ import annotations

import base64
import html
import json
from random import Random
from string import ascii_letters, digits
from urllib.parse import quote, quote_plus

import pytest
from driven_cell import Cell

from harness_nb.outputs import Bounds
from harness_nb.outputs.masking import Deltas, Held, Masker, masks_in
from harness_nb.ports import Output

RANDOM = Random(8)


def random_text(count: int, letters: str = ascii_letters + digits) -> str:
    return "".join(RANDOM.choice(letters) for _ in range(count))


KEY = f"sk-proj-{random_text(60)}-{random_text(40)}"
KNOWN = {
    "OPENAI_API_KEY": KEY,
    "DB_PASSWORD": 'p"4ss\\wörd&<x>/+ y',
    "HF_TOKEN": random_text(32, digits + "abcdef"),
    "SIGNING_KEY": "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(random_text(64) for _ in range(3))
    + "\n-----END PRIVATE",
}
MASKER = Masker(KNOWN)

FORMS = {
    "itself": lambda value: value,
    "repr": lambda value: repr({"k": value}),
    "ascii": ascii,
    "json": lambda value: json.dumps([value]),
    "json in json": lambda value: json.dumps(json.dumps(value)),
    "html": lambda value: f"<td>{html.escape(value)}</td>",
    "url": lambda value: f"https://h/?q={quote(value, safe='')}&r=1",
    "form": lambda value: f"a=1&q={quote_plus(value)}",
    "hex": lambda value: value.encode().hex(),
    "HEX": lambda value: value.encode().hex().upper(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 behind one": lambda value: base64.b64encode(b"u:" + value.encode()).decode(),
    "base64 behind two": lambda value: base64.b64encode(b"me:" + value.encode() + b":x").decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(b"\xff\xfe" + value.encode()).decode(),
    "bytes": lambda value: repr(value.encode("ascii", "backslashreplace")) if value.isascii() else value,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "DB_PASSWORD", "HF_TOKEN"])
def test_known_values_are_masked_by_name_in_every_form(name: str, form: str) -> None:
    written = FORMS[form](KNOWN[name])
    masked = MASKER.mask(f"über {written} after")
    assert f"[secret {name}]" in masked
    assert masked.startswith("über ") and masked.endswith(" after")
    for start in range(len(written) - 12):
        assert len(written) < 40 or written[start + 6 : start + 22] not in masked
    assert MASKER.mask(masked) == masked


@pytest.mark.parametrize("part", [KEY[:47] + "...", "..." + KEY[-20:], KEY[30:60], f"{KEY[:50]}\n{KEY[50:]}"])
def test_parts_of_a_long_value_are_masked_too(part: str) -> None:
    assert MASKER.mask(part).replace("[secret OPENAI_API_KEY]", "").strip(".\n") == ""


def test_lines_of_a_key_file_are_masked_one_by_one() -> None:
    line = KNOWN["SIGNING_KEY"].splitlines()[2]
    assert MASKER.mask(f"x {line} y") == "x [secret SIGNING_KEY] y"


def key_file(lines: int) -> str:
    body = "\n".join(random_text(64) for _ in range(lines))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"


KINDS = {
    "an API key": [
        f"sk-ant-api03-{random_text(40)}",
        f"sk-or-v1-{random_text(64, 'abcdef0123')}",
        f"sk-{random_text(48)}",
    ],
    "a GitHub token": [f"ghp_{random_text(36)}", f"github_pat_{random_text(22)}_{random_text(59)}"],
    "an AWS access key": ["AKIA" + random_text(16, "ABCDEFGH234567")],
    "an AWS secret key": [f"aws_secret_access_key = {random_text(40, ascii_letters + '/+1')}"],
    "a Slack token": ["xoxb-" + random_text(12, digits) + "-" + random_text(24)],
    "a Google key": ["AIza" + random_text(35)],
    "a Hugging Face token": ["hf_" + random_text(34)],
    "a JSON web token": [f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{random_text(43)}"],
    "a private key": [
        key_file(4).strip(),
        repr(key_file(2)),
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: DES-EDE3-CBC,0011\n\n" + random_text(64),
    ],
    "a bearer token": [f"Authorization: Bearer {random_text(30)}7", f"'authorization': 'Basic {random_text(24)}7'"],
    "a password": ["postgresql://alice:c0rrect-h0rse@db.local:5432/x", f"https://h/x?api_key={random_text(20)}1&y=2"],
    "a password or a key": [f"export MY_TOKEN='{random_text(20)}1a'", f"     3\tAPP_SECRET={random_text(20)}1a"],
}


@pytest.mark.parametrize(("words", "text"), [(words, text) for words, texts in KINDS.items() for text in texts])
def test_credentials_of_well_known_kinds_are_masked(words: str, text: str) -> None:
    masked = Masker().mask(f"before {text} after" if "TOKEN" not in text and "SECRET=" not in text else text)
    assert f"[secret: looks like {words}]" in masked
    long_words = [word for word in text.replace("'", " ").replace("=", " ").split() if len(word) > 30]
    assert not [word for word in long_words if word in masked]
    assert Masker().mask(masked) == masked
    assert masks_in(masked) == [f"[secret: looks like {words}]"]


@pytest.mark.parametrize(
    "text",
    [
        '<div class="sk-top-container sk-toggleable__label-arrow sk-estimator-doc-link-label">',
        "password = get_password(user)",
        "postgresql://user:password@localhost/db and redis://h:6379/0",
        'if "-----BEGIN PRIVATE KEY-----" in text: raise ValueError',
        "TOKENIZERS_PARALLELISM=false MAX_TOKENS=100000000000000",
        "SSH_KEY=/home/me/.ssh/id_ed25519",
        "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "epoch 3 loss 0.1234 val_acc 0.98 /usr/lib/python3.11/site-packages/torch/nn/modules/module.py",
        "the bearer of this letter; AKIA; hf_; eyJ; sk-; x://y",
        "a[secret] = 1; [secret]",
    ],
)
def test_innocent_text_is_left_alone(text: str) -> None:
    assert Masker(KNOWN).mask(text) == text


@pytest.mark.parametrize("value", ["true", "1234567", "password", "PostgreSQL", "aaaaaaaaaaaa", "  short "])
def test_trivial_values_are_not_looked_for(value: str) -> None:
    assert Masker({"MY_TOKEN": value}).mask(f"x {value} y") == f"x {value} y"


def test_pictures_are_left_alone_and_keys_of_objects_are_not() -> None:
    picture = {"image/png": KEY, "text/plain": KEY, KEY: [KEY, 1, None]}
    mask = "[secret OPENAI_API_KEY]"
    assert MASKER.mask_json(picture) == {"image/png": KEY, "text/plain": mask, mask: [mask, 1, None]}
    part = {"type": "image", "media_type": "image/png", "data": KEY}
    assert MASKER.mask_json([part]) == [part]


def printed(pieces: list[str], **options: object) -> Cell:
    cell = Cell(masker=MASKER, **options)
    for piece in pieces:
        cell.feed(Output("stream", {"name": "stdout", "text": piece}), step=0.2)
    return cell.close()


def all_of(cell: Cell) -> str:
    return json.dumps([event.model_dump() for event in cell.events]) + cell.sink.text


def assert_nothing_shows(cell: Cell, value: str = KEY, least: int = 8) -> None:
    seen = all_of(cell)
    assert "[secret OPENAI_API_KEY]" in seen
    for start in range(len(value) - least + 1):
        assert value[start : start + least] not in seen, value[start : start + least]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 107])
@pytest.mark.parametrize("end", ["\n", " more\n", ""])
def test_a_secret_that_comes_in_pieces_is_masked_at_every_moment(size: int, end: str) -> None:
    text = f"the key: {KEY}{end}"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    cell = printed(pieces)
    assert_nothing_shows(cell)
    assert cell.texts == [("stdout", f"the key: [secret OPENAI_API_KEY]{end}")]


@pytest.mark.parametrize(
    "text",
    [
        f"\x1b[31m{KEY[:30]}\x1b[0m{KEY[30:]}\n",
        "".join(f"\x1b[1;3{number % 8}m{character}" for number, character in enumerate(KEY)) + "\x1b[0m\n",
        f"\rstep 1 {KEY[:20]}\rstep 1 {KEY}\rstep 2 {KEY}\n",
        f"xx\b\b{KEY[:9]}zz\b\b{KEY[9:]}\n",
        f"{KEY[:50]}\x1b]0;title\x07{KEY[50:]}\n",
        f"{'x' * 4090}{KEY}\n",
        f"{'x ' * 40000}{KEY}{' y' * 40000}\n",
    ],
    ids=["two colours", "each its colour", "carriage returns", "backspaces", "a title", "wrapped", "an endless line"],
)
@pytest.mark.parametrize("size", [11, 100_000])
def test_terminal_codes_hide_no_secret(text: str, size: int) -> None:
    size = max(size, len(text) // 300)
    assert_nothing_shows(printed([text[start : start + size] for start in range(0, len(text), size)]))


def test_a_private_key_that_is_printed_line_by_line_is_masked_wherever_it_is_kept() -> None:
    lines = [random_text(64) for _ in range(60)]
    text = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", "done"])
    cell = printed([f"{line}\n" for line in ("x\n" * 500 + text).split("\n")], bounds=Bounds(cell_lines=30))
    assert "private key" in cell.sink.text and cell.sink.text.endswith("done\n")
    assert not [line for line in lines[1:] if line in all_of(cell)]


def test_html_that_parts_a_secret_shows_a_mask() -> None:
    for page in ("".join(f"<b>{sign}</b>" for sign in KEY), "".join(f"&#{ord(sign)};" for sign in KEY)):
        cell = Cell(masker=MASKER).run([Output("display_data", {"data": {"text/html": f"<p>x {page}</p>"}})])
        assert cell.record[0]["data"]["text/html"] == "<pre>x [secret OPENAI_API_KEY]</pre>"
    table = "<table><tr><td>1</td></tr></table>"
    cell = Cell(masker=MASKER).run([Output("display_data", {"data": {"text/html": table}})])
    assert cell.record[0]["data"]["text/html"] == table


def test_what_only_begins_like_a_secret_is_shown_in_the_end() -> None:
    assert printed(["ends with sk-"]).texts == [("stdout", "ends with sk-")]
    assert printed([f"ends with {KEY[:10]}"]).texts == [("stdout", f"ends with {KEY[:10]}")]


@pytest.mark.parametrize("size", [1, 5, 16, 64])
def test_text_that_streams_in_is_masked_before_it_is_shown(size: int) -> None:
    text = f"I use {KEY} and ghp_{'aB3' * 12} then\nstop here, all."
    for stream in (Deltas(MASKER), Held(MASKER)):
        shown = "".join(stream.feed(text[start : start + size]) for start in range(0, len(text), size)) + stream.flush()
        assert shown == "I use [secret OPENAI_API_KEY] and [secret: looks like a GitHub token] then\nstop here, all."


def test_streamed_text_is_shown_word_by_word() -> None:
    stream = Deltas(MASKER)
    assert [stream.feed(piece) for piece in ("Hel", "lo wor", "ld, ", "it is")] == ["", "Hello ", "world, ", "it "]
    assert stream.flush() == "is"
