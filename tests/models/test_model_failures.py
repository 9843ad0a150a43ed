"""The classification of failures, the decoder of server-sent events and the reading of calls: pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest

from harness_nb.errors import (
    AuthenticationError,
    ContextOverflowError,
    ModelError,
    QuotaError,
    RefusalError,
    TransientModelError,
)
from harness_nb.models.calls import mend, read_call
from harness_nb.models.endpoint import plain_error
from harness_nb.models.failures import (
    MESSAGE_LIMIT,
    connection_error,
    model_error,
    read_complaint,
    read_error_body,
    read_retry_after,
)
from harness_nb.models.sse import EventDecoder, ServerEvent

COMPLAINTS: list[tuple[int | None, Any, type[ModelError]]] = [
    (400, {"error": {"message": "m", "code": "context_length_exceeded"}}, ContextOverflowError),
    (400, {"error": {"message": "m", "type": "exceed_context_size_error", "n_ctx": 4096}}, ContextOverflowError),
    (400, {"error": "the prompt is greater than the context length"}, ContextOverflowError),
    (429, {"error": {"message": "Request too large for gpt-x on tokens per min"}}, ContextOverflowError),
    (500, {"error": {"message": "exceeds the available context size"}}, ContextOverflowError),
    (401, {"error": {"message": "maximum context length"}}, AuthenticationError),
    (429, {"error": {"message": "m", "type": "insufficient_quota"}}, QuotaError),
    (429, {"error": {"message": "m", "code": "rate_limit_exceeded"}}, TransientModelError),
    (529, {"error": {"message": "m", "type": "overloaded_error"}}, TransientModelError),
    (408, "", TransientModelError),
    (409, "", TransientModelError),
    (422, {"detail": [{"loc": ["body", "x"], "msg": "bad"}]}, ModelError),
    (None, {"error": {"code": 502, "message": "upstream"}}, TransientModelError),
    (None, {"error": {"code": "402", "message": "credits"}}, QuotaError),
    (None, {"type": "error", "code": "server_error", "message": "m"}, TransientModelError),
    (None, {"type": "error", "code": None, "message": "m"}, TransientModelError),
    (None, {"type": "error", "code": "image_too_large", "message": "m"}, ModelError),
    (None, {"error": {"type": "invalid_request_error", "message": "m"}}, ModelError),
    (None, {"code": "content_filter", "message": "m"}, RefusalError),
    (400, [{"error": {"code": 400, "message": "input token count exceeds"}}], ContextOverflowError),
    (None, {"error": "Unexpected endpoint or method. (POST /chat/completions)"}, ModelError),
]


@pytest.mark.parametrize(("status", "body", "expected"), COMPLAINTS)
def test_complaints_become_typed_errors(status: int | None, body: Any, expected: type[ModelError]) -> None:
    error = model_error("here", read_complaint(body), status=status)
    assert type(error) is expected
    assert str(error).startswith("here answered with an error")


def test_a_complaint_is_passed_on_in_one_bounded_line() -> None:
    complaint = read_error_body("x\n" * 5000)
    assert "\n" not in complaint.message
    assert len(complaint.message) <= MESSAGE_LIMIT + 2
    page = read_error_body("<!DOCTYPE html><html><head><title> 504\n Gateway </title></head><body>…</body></html>")
    assert page.message == "a web page titled '504 Gateway'"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "soon"}, None),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers) == seconds


def test_retry_after_may_be_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    assert read_retry_after({"retry-after": date}) == pytest.approx(40, abs=5)
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=40), usegmt=True)
    assert read_retry_after({"retry-after": past}) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 6.2s.", 6.2),
        ("Please try again in 250ms.", 0.25),
        ("try again in 2m3s", 123.0),
        ("You exceeded your current quota. Please retry in 34.074824224s.", 34.074824224),
        ("try again later", None),
        ("try again in 5 minutes", None),
    ],
)
def test_the_wait_in_a_text_is_read(text: str, seconds: float | None) -> None:
    error = model_error("here", read_complaint({"message": text, "code": "rate_limit_exceeded"}))
    assert error.retry_after == seconds


@pytest.mark.parametrize(
    ("cause", "expected", "advice"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed", ModelError, "SSL_CERT_FILE"),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number", ModelError, "http://"),
        ("[SSL: RECORD_LAYER_FAILURE] record layer failure", ModelError, "http://"),
        ("All connection attempts failed", TransientModelError, "Is the server running"),
        ("peer closed connection without sending complete message body", TransientModelError, ""),
    ],
)
def test_failures_of_connections_say_what_mends_them(cause: str, expected: type[ModelError], advice: str) -> None:
    error = connection_error("here", cause)
    assert type(error) is expected
    assert cause in str(error)
    assert advice in str(error)


@pytest.mark.parametrize(
    ("cause", "expected", "said"),
    [
        (httpx2.ConnectTimeout("slow"), ConnectionError, "no connection within 10 s"),
        (httpx2.ReadTimeout("silent"), TimeoutError, "gave up"),
        (httpx2.ConnectError("All connection attempts failed"), ConnectionError, "All connection attempts failed"),
        (httpx2.RemoteProtocolError(""), ConnectionError, "RemoteProtocolError"),
        (None, ConnectionError, "gave up"),
    ],
)
def test_waiting_for_a_connection_is_told_from_waiting_for_an_answer(
    cause: Exception | None, expected: type[Exception], said: str
) -> None:
    told = RuntimeError("gave up")
    told.__cause__ = cause
    error = plain_error(told)
    assert type(error) is expected
    assert str(error) == said


STREAM = (
    'data: {"a":1}\r\n\r\nevent: named\rdata: one\r\ndata: two\r\r: comment\n\ndata:ü\u2028\x0b\n\nid: 7\n\ndata: last'
)
EVENTS = [
    ServerEvent("", '{"a":1}'),
    ServerEvent("named", "one\ntwo"),
    ServerEvent("", "ü\u2028\x0b"),
    ServerEvent("", "last"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_events_are_decoded_in_any_chunks(size: int) -> None:
    data = STREAM.encode()
    decoder = EventDecoder()
    events = [event for start in range(0, len(data), size) for event in decoder.feed(data[start : start + size])]
    assert events + decoder.close() == EVENTS
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("arguments", "cut", "expected", "malformed"),
    [
        ('{"a": 1}', False, {"a": 1}, None),
        ('{"a": 1}', True, {"a": 1}, None),
        ({"a": 1}, False, {"a": 1}, None),
        ("", False, {}, None),
        (None, False, {}, None),
        (" ", True, {}, " "),
        ("null", False, {}, "null"),
        ('{"a": Infinity}', False, {}, '{"a": Infinity}'),
        ("[" * 100_000, False, {}, "[" * 100_000),
    ],
)
def test_arguments_are_read(arguments: Any, cut: bool, expected: dict[str, Any], malformed: str | None) -> None:
    call = read_call("c", "bash", arguments, cut=cut)
    assert (call.arguments, call.malformed) == (expected, malformed)


def test_only_lone_surrogates_are_mended() -> None:
    assert mend({"ü🙂": ["a\ud83d", "\ud83d\ude42", 5, None]}) == {"ü🙂": ["a\ufffd", "🙂", 5, None]}
