"""What is answered: a status, headers and a body; and the one shape of everything that is refused."""

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
    """An answer that is not what was asked for: `code` is for programs, the message and the hint for people."""

    def __init__(self, code: str, message: str, hint: str | None = None, headers: Headers | None = None) -> None:
        """`code` is one of ERROR_CODES, which has its status, and its hint where none is given."""
        super().__init__(message)
        row = ERROR_CODES[code]
        self.code = code
        self.status = row.status
        self.hint = row.hint if hint is None else hint
        self.headers = headers or []

    def answer(self, *, short: bool = False) -> Answer:
        """The one error shape; the short routes give the message alone."""
        message = str(self)
        body: Struct = ShortErrorAnswer(message) if short else ErrorAnswer(ErrorBody(self.code, message, self.hint))
        return Answer(self.status, [*COMMON, *self.headers], _text.encode(body))


def stopping() -> Refused:
    return Refused("stopping", "the server is being stopped")


def told_outside(message: str, servers: str, otherwise: str) -> str:
    """A message of ours for whoever asks over HTTP: `otherwise` where it names a folder or an address."""
    hosts = [server.strip().rpartition(":")[0] or server.strip() for server in servers.split(",")]
    return otherwise if _INSIDE.search(message) or any(host in message for host in hosts) else message


def answered_at(position: Position) -> tuple[str, str]:
    """The header that says how fresh an answer is: everything before the position is in it."""
    return ("x-lastword-position", str(position))


def json_answer(content: Struct, *headers: tuple[str, str]) -> Answer:
    return Answer(200, [*COMMON, *headers], _text.encode(content))
