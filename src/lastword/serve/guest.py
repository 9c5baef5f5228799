"""The interface through which another room adds to the server: routes and streams, metrics, readiness.

`serve` knows no scenario. Whoever starts the server gives it its guests (docs/decisions/0020-guests.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from prometheus_client.metrics_core import Metric

from lastword.kafka.client.connection import Connection
from lastword.serve.changes.change_streams import Streams
from lastword.serve.http.routes import Route
from lastword.serve.tables.served_table import ServedTable


class Host(Protocol):
    """What the routes of a guest may use of the server."""

    @property
    def streams(self) -> Streams: ...


class Guest:
    """A room that adds to the server. What it does not override adds nothing."""

    # `/cluster` has a field of this name: whether the guest is present.
    name: str
    # Only the paths of a guest that is present are in the OpenAPI document. An absent one can say how to get it.
    is_present: bool = True
    # For GET, without names in the path or a query. A handler is called in the event loop, so it must not block.
    routes: Sequence[Route[Host]] = ()
    # For the OpenAPI document: an example of each Struct that is the answer of a route.
    examples: Sequence[Struct] = ()

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


def guest_routes(guests: Iterable[Guest]) -> list[Route[Host]]:
    """The rows that guests add to the table of routes."""
    return [route for guest in guests for route in guest.routes]
