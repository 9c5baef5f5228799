"""For tests of the routes about the cluster: a home that has the tests' cluster, and rows of a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from lastword.kafka.broker.local_cluster import LocalCluster


def home_of(cluster: LocalCluster, folder: Path) -> Path:
    """A home that lists the cluster as its own."""
    home = folder / "home"
    (home / "clusters").mkdir(parents=True)
    (home / "clusters" / cluster.name).symlink_to(cluster.folder, target_is_directory=True)
    return home


def status_of(app: str, at: int, **others: Any) -> dict[str, Any]:
    """A row of a pipeline's status table."""
    return {
        "app": app,
        "at": at,
        "started": at - 60_000,
        "generation": 3,
        "owner": "host-1",
        "source": "new_users",
        "emits": ["actions"],
        "position": "0:5",
        "lag": 12,
        "rate": 50.1,
        "valid": 18_402,
        "rejected": 0,
        "tables": {"team_stats": {}},
        "batch": {"tasks": 1, "records": 100, "seconds": 0.2, "latency_ms": 300},
        "events": [{"at": at, "what": "started"}],
        **others,
    }


def json_answer(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    request = Request(f"{url}{path}", method=method, headers=headers)  # noqa: S310
    try:
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)
