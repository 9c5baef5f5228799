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
    from lastword.core.errors import HistoryLost, LastwordError, NotFound, NotReady
    from lastword.core.position import Position
    from lastword.core.row import Row
    from lastword.kafka.client.writing import Ack
    from lastword.replica.replica import Replica

__version__ = "0.1.0"
__all__ = [
    "Ack",
    "Cluster",
    "HistoryLost",
    "LastwordError",
    "NotFound",
    "NotReady",
    "Position",
    "Replica",
    "Row",
    "Table",
    "connect",
    "local",
]

_HOMES = {
    "Ack": "lastword.kafka.client.writing",
    "Cluster": "lastword.api.cluster",
    "HistoryLost": "lastword.core.errors",
    "LastwordError": "lastword.core.errors",
    "NotFound": "lastword.core.errors",
    "NotReady": "lastword.core.errors",
    "Position": "lastword.core.position",
    "Replica": "lastword.replica.replica",
    "Row": "lastword.core.row",
    "Table": "lastword.api.table",
    "connect": "lastword.api.cluster",
    "local": "lastword.api.cluster",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'lastword' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
