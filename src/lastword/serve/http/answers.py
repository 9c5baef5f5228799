"""An answer has a status, headers and a body. Every refusal has the same shape."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from msgspec import Struct

from lastword.core.errors import LastwordError
from lastword.core.position import Position
from lastword.core.shapes.errors import ErrorAnswer, ErrorBody, ShortErrorAnswer
from lastword.serve.http.error_codes import ERROR_CODES

Headers = list[tuple[str, str]]
# A browser must not guess that a value is a page or a script.
COMMON: Headers = [("content-type", "application/json"), ("x-content-type-options", "nosniff")]

# A folder, or a port after a host.
_INSIDE = re.compile(r"[/\\]|\w:\d")

_text = msgspec.json.Encoder()


class Answer(NamedTuple):
    status: int
    headers: Headers
    body: bytes


class Refused(LastwordError):
    """Raised to refuse a request: the code is for programs, the message and the hint are for people."""

    def __init__(self, code: str, message: str, hint: str | None = None, headers: Headers | None = None) -> None:
        """`code` is a key of ERROR_CODES, which has the status and the usual hint."""
        super().__init__(message)
        row = ERROR_CODES[code]
        self.code = code
        self.status = row.status
        self.hint = row.hint if hint is None else hint
        self.headers = headers or []

    def answer(self, *, short: bool = False) -> Answer:
        """The refusal as JSON; the short routes give only the message."""
        message = str(self)
        body: Struct = ShortErrorAnswer(message) if short else ErrorAnswer(ErrorBody(self.code, message, self.hint))
        return Answer(self.status, [*COMMON, *self.headers], _text.encode(body))


def stopping() -> Refused:
    return Refused("stopping", "the server is being stopped")


def public_message(message: str, servers: str, otherwise: str) -> str:
    """The message for a client of HTTP; `otherwise` if the message names a folder or an address."""
    hosts = [server.strip().rpartition(":")[0] or server.strip() for server in servers.split(",")]
    return otherwise if _INSIDE.search(message) or any(host in message for host in hosts) else message


def answered_at(position: Position) -> tuple[str, str]:
    """The header with the position of an answer: every record before the position is in the answer."""
    return ("x-lastword-position", str(position))


def json_answer(content: Struct, *headers: tuple[str, str]) -> Answer:
    return Answer(200, [*COMMON, *headers], _text.encode(content))
