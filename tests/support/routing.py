"""The table of routes without a server behind it: which row a path names, and nothing that answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from lastword.serve.http.routes import Endpoint, Route, Router
from lastword.serve.route_table import ROUTES


class _NoParts:
    """Stands for every part of the server; no handler is ever called."""

    def __getattr__(self, _: str) -> Any:
        return self


def router(short: Collection[str] = ("users",), others: Iterable[Route[Any]] = ()) -> Router:
    return Router([*ROUTES, *others], _NoParts(), short)


def endpoint(path: str, *others: Route[Any]) -> Endpoint:
    return router(others=others).match(path)[0]
