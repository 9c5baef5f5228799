"""The interface through which another room adds to the server: routes and streams, metrics, readiness.

`serve` knows no scenario. Whoever starts the server gives it its guests (docs/decisions/0020-guests.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client.metrics_core import Metric

from lastword.kafka.client.connection import Connection
from lastword.serve.changes.change_streams import Streams
from lastword.serve.http.answers import Answer
from lastword.serve.http.backpressure import Streamed
from lastword.serve.tables.served_table import ServedTable


class GuestRoute(NamedTuple):
    """A path for GET and HEAD, without parameters. A token is needed for it where tokens are used."""

    path: str
    # Its label in the metrics of requests.
    kind: str
    # Called in the event loop, so it must not block. Raises Refused where there is no answer.
    answer: Callable[[Streams], Answer | Streamed]
    # Its operations in the OpenAPI document, as `reading` in serve/openapi/operations.py makes them.
    operations: Mapping[str, Any]


class Guest:
    """A room that adds to the server. What it does not override adds nothing."""

    # `/cluster` has a field of this name: whether the guest is present.
    name: str
    # Only the paths of a guest that is present are in the OpenAPI document. An absent one can say how to get it.
    is_present: bool = True
    routes: Sequence[GuestRoute] = ()
    # Schemas of the OpenAPI document to which the operations refer.
    schemas: Mapping[str, Any] = {}

    def check(self, connection: Connection) -> None:
        """Raises an error where the guest can't be served, before anything is started."""

    def start(self, connection: Connection, tables: Sequence[ServedTable]) -> None:
        """Called once the tables are open, before the first request."""

    def close(self) -> None:
        """Called after the last request, while the tables are still open."""

    def why_not_ready(self) -> str | None:
        """The message of `/ready` while the guest is not ready; None when it is."""
        return None

    def metrics(self) -> Iterable[Metric]:
        """What the guest adds to `/metrics`."""
        return ()
