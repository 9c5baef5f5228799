"""An address and the allowed methods for every kind of route: written down here, not taken from the code."""

from __future__ import annotations

METHODS = ("GET", "HEAD", "PUT", "DELETE", "POST", "PATCH", "OPTIONS", "TRACE", "BREW", "get", "put")
ADDRESSES: dict[str, str] = {
    "tables": "/tables",
    "table": "/tables/users",
    "count": "/tables/users/count",
    "rows": "/tables/users/rows",
    "row": "/tables/users/rows/k",
    "changes": "/tables/users/changes",
    "all changes": "/changes",
    "short rows": "/users",
    "short row": "/users/k",
    "short count": "/users/count",
    "health": "/health",
    "ready": "/ready",
    "metrics": "/metrics",
    "openapi": "/openapi.json",
    "cluster": "/cluster",
    "topic": "/topics/user-profiles",
    "compact": "/topics/user-profiles/compact",
    "console": "/",
    "console file": "/console/console.css",
}
# Of a guest, by the label in metrics.
GUEST_ADDRESSES = {"board": "/board", "board refused": "/board/refused", "board changes": "/board/changes"}
# The same addresses with a name left out.
NAMELESS = (
    "/tables/",
    "/tables//count",
    "/tables//rows",
    "/tables//rows/k",
    "/tables//rows/",
    "/tables//changes",
    "/topics/",
    "/topics//compact",
    "//tables",
    "//users",
    "//users/k",
)
_WRITES: dict[str, tuple[str, ...]] = {"row": ("PUT", "DELETE"), "rows": ("POST",), "compact": ("POST",)}


def allowed(kind: str) -> tuple[str, ...]:
    reads = () if kind == "compact" else ("GET", "HEAD")
    return (*reads, *_WRITES.get(kind, ()))
