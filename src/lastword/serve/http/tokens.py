"""Who may read and who may write: tokens from a file that only its owner can read.

The file has one token a line, after what it is for:

    # the dashboard
    read 9f2c6a0d51b84e0c8e77
    write 51b8c1f0aa9e4b6f9d20

A token for writing may also read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from pathlib import Path

from lastword.core.errors import BadInput
from lastword.serve.http.answers import Refused

_LEAST_LETTERS = 16
# The characters that a header may have without quotes.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


class Tokens:
    def __init__(self, *, reading: list[str], writing: list[str]) -> None:
        self._reading = [_digest(token) for token in (*reading, *writing)]
        self._writing = [_digest(token) for token in writing]

    def check(self, authorization: str | None, *, writing: bool) -> None:
        """Refused unless the header has a token that allows the request."""
        kind, _, token = (authorization or "").partition(" ")
        given = _digest(token.strip() if kind.lower() == "bearer" else "")
        # Compares all tokens, each in constant time, so that the time of the answer reveals nothing.
        may_read = sum(hmac.compare_digest(given, known) for known in self._reading) > 0
        may_write = sum(hmac.compare_digest(given, known) for known in self._writing) > 0
        if not may_read:
            raise Refused(
                "unauthorized",
                "the server does not know this token" if authorization else "the request needs a token",
                headers=[("www-authenticate", "Bearer")],
            )
        if writing and not may_write:
            raise Refused("forbidden", "this token may only read")


def read_tokens(file: Path) -> list[tuple[str, str]]:
    """The tokens of a file, in its order, each after "read" or "write"; BadInput for one that can't be trusted."""
    try:
        if file.stat().st_mode & 0o077:
            raise BadInput(f"{file} can be read by others: run  chmod 600 {file}")
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as failure:
        raise BadInput(f"the token file {file} can't be read: {getattr(failure, 'strerror', failure)}") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        purpose, _, token = line.strip().partition(" ")
        token = token.strip()
        # The line itself is not shown: it may be a secret.
        if purpose not in ("read", "write") or not _TOKEN.fullmatch(token):
            raise BadInput(f"{file}, line {number}: write it like  read TOKEN  or  write TOKEN")
        if len(token) < _LEAST_LETTERS:
            raise BadInput(f"{file}, line {number}: a token has at least {_LEAST_LETTERS} letters: make it longer")
        found.append((purpose, token))
    if not found:
        raise BadInput(f"{file} has no token: write lines like  read TOKEN  and  write TOKEN")
    return found


def tokens_of(file: Path) -> Tokens:
    found = read_tokens(file)
    return Tokens(
        reading=[token for purpose, token in found if purpose == "read"],
        writing=[token for purpose, token in found if purpose == "write"],
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
