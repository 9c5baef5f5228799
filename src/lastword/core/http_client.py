"""A client of `lastword serve`: one kept connection, and plain words when the server does not answer."""

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
    """The server refused the request; `code` is the code of its answer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Address:
    """A server, or one table of it."""

    scheme: str
    host: str
    port: int
    # The path before `/tables`: a proxy may serve lastword below a path.
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
            # The message leaves the text out: it may hold a password.
            extra = "a user, a password, a ?query, a #fragment or a letter outside ASCII"
            raise BadInput(f"the address of {host} has {extra}: {_LIKE}")
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


class _Response(NamedTuple):
    status: int
    body: bytes


class Server:
    """A server at an address; connects at the first request."""

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
        """The answer in its shape; ServerRefused with the server's own code, BadInput where another program answers."""
        target = f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")
        status, body = self._response(target)
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

    def _response(self, target: str) -> _Response:
        was_open = self._connection.sock is not None
        try:
            return self._ask(target)
        except (ConnectionResetError, BrokenPipeError):
            # The server may have closed the kept connection meanwhile: a new connection may work.
            if not was_open:
                raise self._unreachable("it ended the connection without an answer") from None
        return self._ask_again(target)

    def _ask_again(self, target: str) -> _Response:
        try:
            return self._ask(target)
        except (ConnectionResetError, BrokenPipeError):
            raise self._unreachable("it ended the connection without an answer") from None

    def _ask(self, target: str) -> _Response:
        try:
            self._connection.request("GET", target, headers=self._headers)
            answer = self._connection.getresponse()
            body = answer.read(_MOST_BYTES)
            if len(body) == _MOST_BYTES:
                raise self._stranger(f"it answered with {_MOST_BYTES} bytes and more")
            if answer.length:
                # A read with a limit does not fail when it gets less than the announced length.
                raise http.client.IncompleteRead(b"", answer.length)
            return _Response(answer.status, body)
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
