"""lastword: the last word on every key of a compacted Kafka topic.

Read in this order: `core` (records, positions, the fold, codecs), `kafka` (reading and writing, topics, compaction, the
local cluster), `replica` (a table on local disk), `api` (what a program sees), `serve` (HTTP), `spark` and `pipeline`
(folds and rules), `cli`. The names below load what they need when they are first used, so that `import lastword` costs
next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lastword.api.cluster import Cluster, connect, local
    from lastword.api.table import Table
    from lastword.core.errors import (
        AlreadyExists,
        BadInput,
        ClusterUnreachable,
        FellBehind,
        HistoryLost,
        LastwordError,
        NotEnoughReplicas,
        NotFound,
        NotReady,
        ReplicaUnusable,
        TopicChanged,
        WriteFailed,
    )
    from lastword.core.position import Position
    from lastword.core.row import Row
    from lastword.kafka.client.writing import Ack
    from lastword.replica.replica import Replica
    from lastword.replica.watching import Watch

__version__ = "0.1.0"
__all__ = [
    "Ack",
    "AlreadyExists",
    "BadInput",
    "Cluster",
    "ClusterUnreachable",
    "FellBehind",
    "HistoryLost",
    "LastwordError",
    "NotEnoughReplicas",
    "NotFound",
    "NotReady",
    "Position",
    "Replica",
    "ReplicaUnusable",
    "Row",
    "Table",
    "TopicChanged",
    "Watch",
    "WriteFailed",
    "connect",
    "local",
]

_HOMES = {
    "Ack": "lastword.kafka.client.writing",
    "AlreadyExists": "lastword.core.errors",
    "BadInput": "lastword.core.errors",
    "Cluster": "lastword.api.cluster",
    "ClusterUnreachable": "lastword.core.errors",
    "FellBehind": "lastword.core.errors",
    "HistoryLost": "lastword.core.errors",
    "LastwordError": "lastword.core.errors",
    "NotEnoughReplicas": "lastword.core.errors",
    "NotFound": "lastword.core.errors",
    "NotReady": "lastword.core.errors",
    "Position": "lastword.core.position",
    "Replica": "lastword.replica.replica",
    "ReplicaUnusable": "lastword.core.errors",
    "Row": "lastword.core.row",
    "Table": "lastword.api.table",
    "TopicChanged": "lastword.core.errors",
    "Watch": "lastword.replica.watching",
    "WriteFailed": "lastword.core.errors",
    "connect": "lastword.api.cluster",
    "local": "lastword.api.cluster",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lastword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
