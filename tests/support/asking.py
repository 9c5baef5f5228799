"""Asking the HTTP service without a server between: a request in, an answer out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from lastword.core.codecs import codec_named
from lastword.kafka.connection import Connection
from lastword.serve.limits import Limits
from lastword.serve.service import Request, Service
from lastword.serve.tables import ServedTable
from lastword.table import Table


class Told(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json["error"]["code"])


def ask(service: Service, address: str, method: str = "GET", **headers: str) -> Told:
    """The answer to an address, its path decoded as the server does; headers in Python spelling."""
    path, _, query = address.partition("?")
    spelt = {name.replace("_", "-"): text for name, text in headers.items()}
    answer = asyncio.run(service.answer(Request(method, unquote(path), query, spelt)))
    return Told(answer.status, dict(answer.headers), answer.body)


def served(
    connection: Connection,
    topic: str,
    folder: Path,
    *,
    name: str = "users",
    key: str = "string",
    value: str = "json",
    wait: bool = True,
) -> ServedTable:
    """A table with a replica of its own, which the caller closes."""
    replica = Table(connection, topic, key=key, value=value).replica(folder, wait=wait)
    return ServedTable(name, codec_named(key), codec_named(value), replica)


def service_of(*tables: ServedTable, **limits: Any) -> Service:
    return Service(tables, Limits(**limits))
