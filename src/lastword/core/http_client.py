"""Asking a server of `lastword serve` over HTTP: one kept connection, and plain words when it does not answer."""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from lastword.core.errors import BadInput, ServerUnreachable
from lastword.core.shapes.errors import ErrorAnswer

# Longer than a server waits for a min_position.
_TIMEOUT_S = 30.0
# Far above any page, so that something endless at the address does not fill the memory.
_MOST_BYTES = 256 * 1024 * 1024
_PATH = re.compile(
    r"(?P<base>(?:/(?!tables(?:/|$))[A-Za-z0-9._~%-]+)*)(?:/tables(?:/(?P<table>[A-Za-z0-9_-]{1,100}))?)?/?"
)
_LIKE = "write it like http://127.0.0.1:8090 or http://127.0.0.1:8090/tables/users"

_Shape = TypeVar("_Shape")


class ServerRefused(BadInput):
    """What was asked for was refused; `code` is the server's own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Address:
    """A server, or one table of it."""

    scheme: str
    host: str
    port: int
    # What stands before `/tables`: a proxy may have put the server below a path of its own.
    base: str
    table: str | None

    @classmethod
    def parse(cls, text: str) -> Address:
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise BadInput(f"{text!r} is no address of a server: {_LIKE}") from None
        path = _PATH.fullmatch(parts.path)
        if parts.scheme not in ("http", "https") or not host or path is None or port == 0:
            raise BadInput(f"{text!r} is no address of a server: {_LIKE}")
        if parts.query or parts.fragment or parts.username is not None or not text.isascii():
            # The text itself is not shown: there may be a password in it.
            raise BadInput(f"an address of {host} has more than a server and a table: {_LIKE}")
        return cls(
            scheme=parts.scheme,
            host=host,
            port=port or (443 if parts.scheme == "https" else 80),
            base=path["base"],
            table=path["table"],
        )

    @property
    def server(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.base}"


class _Told(NamedTuple):
    status: int
    body: bytes


class Server:
    """A server at an address; connects when it is first asked."""

    def __init__(self, address: Address, *, token: str | None = None, timeout_s: float = _TIMEOUT_S) -> None:
        self.url = address.server
        self._base = address.base
        self._timeout_s = timeout_s
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(address.host, address.port, timeout=timeout_s)
        self._headers = {"accept": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"

    def get(self, path: str, query: Mapping[str, str], shape: type[_Shape]) -> _Shape:
        """The answer in its shape; ServerRefused with the server's own code, BadInput where no lastword answers."""
        target = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        status, body = self._told(target)
        try:
            if status == 200:
                return msgspec.json.decode(body, type=shape)
            error = msgspec.json.decode(body, type=ErrorAnswer).error
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._stranger(f"GET {path} gave {status} and not what lastword answers") from None
        hint = "give a token with --token-file" if error.code == "unauthorized" else error.hint
        raise ServerRefused(error.code, f"{self.url}: {error.message}: {hint}")

    def close(self) -> None:
        self._connection.close()

    def _told(self, target: str) -> _Told:
        was_open = self._connection.sock is not None
        try:
            return self._asked(target)
        except (ConnectionResetError, BrokenPipeError):
            # A connection that was kept may have been closed meanwhile: that says nothing about the next one.
            if not was_open:
                raise self._unreachable("it ended the connection without an answer") from None
        return self._asked_anew(target)

    def _asked_anew(self, target: str) -> _Told:
        try:
            return self._asked(target)
        except (ConnectionResetError, BrokenPipeError):
            raise self._unreachable("it ended the connection without an answer") from None

    def _asked(self, target: str) -> _Told:
        try:
            self._connection.request("GET", target, headers=self._headers)
            answer = self._connection.getresponse()
            body = answer.read(_MOST_BYTES)
            if len(body) == _MOST_BYTES:
                raise self._stranger(f"it answered with {_MOST_BYTES} bytes and more")
            if answer.length:
                # A read with a limit does not say itself that it got less than was announced.
                raise http.client.IncompleteRead(b"", answer.length)
            return _Told(answer.status, body)
        except (ConnectionResetError, BrokenPipeError):
            self._connection.close()
            raise
        except http.client.IncompleteRead:
            self._connection.close()
            raise self._unreachable("it ended in the middle of an answer") from None
        except http.client.HTTPException:
            self._connection.close()
            raise self._stranger("it does not answer in HTTP") from None
        except TimeoutError:
            self._connection.close()
            raise self._unreachable(f"no answer within {self._timeout_s:g} s") from None
        except ssl.SSLError as failure:
            self._connection.close()
            raise self._unreachable(f"no TLS with it: {failure.reason or failure}") from None
        except OSError as failure:
            self._connection.close()
            raise self._unreachable(failure.strerror or str(failure)) from None

    def _unreachable(self, why: str) -> ServerUnreachable:
        return ServerUnreachable(f"{self.url} can't be reached ({why}): is  lastword serve  running there?")

    def _stranger(self, why: str) -> BadInput:
        return BadInput(f"{self.url} is no lastword server ({why}): give the address that  lastword serve  printed")
