"""Which table a store is a copy of, and in which format: written once into each store."""

from __future__ import annotations

from dataclasses import dataclass

from lastword.core.errors import ReplicaUnusable
from lastword.replica.store.row_layout import FORMAT


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Which table a store is a copy of."""

    topic: str
    topic_id: str
    cluster_id: str
    key_codec: str
    value_codec: str
    delete_retention_ms: int
    format: int = FORMAT


class OlderFormat(ReplicaUnusable):
    """The store was written by an older lastword: it is rebuilt from the topic."""
