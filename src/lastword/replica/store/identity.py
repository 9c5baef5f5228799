"""Which table a store is a copy of, and in which format: written once into each store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from lastword.core.errors import ReplicaUnusable
from lastword.replica.store.row_layout import FORMAT


class Identity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which table a store is a copy of."""

    topic: str
    topic_id: str
    cluster_id: str
    key_codec: str
    value_codec: str
    delete_retention_ms: int
    format: int = FORMAT


class WrittenFormat(Struct, frozen=True):
    """The part of an identity that is the same in every format."""

    format: Any = None


class OlderFormat(ReplicaUnusable):
    """The store was written by an older lastword: it is rebuilt from the topic."""


def refuse_another_format(folder: Path, version: object) -> None:
    """OlderFormat for a store of an older lastword, ReplicaUnusable for one of a newer lastword."""
    if version == FORMAT:
        return
    if isinstance(version, int) and version < FORMAT:
        raise OlderFormat(f"{folder} has the format {version}, this lastword reads {FORMAT}")
    raise ReplicaUnusable(
        f"{folder} has the format {version}, this lastword reads {FORMAT}: use the lastword that wrote it, "
        "or delete the folder and it is built again from the topic"
    )
