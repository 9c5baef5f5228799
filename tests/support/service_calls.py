"""Calls of the HTTP service without a server: a request in, an answer out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from lastword.api.table import Table
from lastword.core.codecs import codec_named
from lastword.kafka.client.connection import Connection
from lastword.serve.http.answers import Answer
from lastword.serve.http.limits import Limits
from lastword.serve.http.requests import Request
from lastword.serve.http.unsent_answers import Unsent
from lastword.serve.service import Service
from lastword.serve.tables.served_table import ServedTable, shown_topic
from lastword.serve.tables.writes import Writes


class ServiceAnswer(NamedTuple):
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


async def in_two(body: bytes) -> AsyncIterator[bytes]:
    """A body in two parts, as from a network."""
    yield body[: len(body) // 2]
    yield body[len(body) // 2 :]


def request_of(method: str, path: str, query: str, headers: dict[str, str], body: AsyncIterator[bytes]) -> Request:
    """A request of a client that stays connected."""
    return Request(method, path, query, headers, body, asyncio.Event().wait, Unsent(1 << 40).hold())


async def answer_to(service: Service, request: Request) -> Answer:
    """The answer to a request that is not for a stream."""
    answer = await service.answer(request)
    assert isinstance(answer, Answer)
    return answer


def ask(service: Service, address: str, method: str = "GET", body: bytes = b"", **headers: str) -> ServiceAnswer:
    """The answer to an address. The path is decoded as by the server; `_` in a header name stands for `-`."""
    path, _, query = address.partition("?")
    spelt = {name.replace("_", "-"): text for name, text in headers.items()}
    request = request_of(method, unquote(path), query, spelt, in_two(body))
    answer = asyncio.run(answer_to(service, request))
    return ServiceAnswer(answer.status, dict(answer.headers), answer.body)


def served_table(
    connection: Connection,
    topic: str,
    folder: Path,
    *,
    name: str = "users",
    key: str = "string",
    value: str = "json",
    wait: bool = True,
    patience_s: float = 30.0,
) -> ServedTable:
    """A table with its own replica and writer. The caller closes the table."""
    replica = Table(connection, topic, key=key, value=value).replica(folder, wait=wait)
    writes = Writes(
        connection,
        topic,
        waiting=Limits().waiting_writes,
        expected_id=lambda: shown_topic(replica),
        patience_s=patience_s,
    )
    return ServedTable(name, codec_named(key), codec_named(value), replica, writes, short=name == "users")


def service_of(*tables: ServedTable, **limits: Any) -> Service:
    return Service(tables, Limits(**limits))
