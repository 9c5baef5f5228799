"""Warnings about keys outside the partition where Java's partitioner puts them, and about keys in two partitions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lastword.cli.output import note
from lastword.cli.progress_line import ProgressLine
from lastword.cli.readable import readable
from lastword.core.codecs import Codec
from lastword.core.errors import NotFound

if TYPE_CHECKING:
    from lastword.kafka.client.connection import Connection
    from lastword.kafka.client.reading import FoldedTable

# How long a key that is not in its own partition is searched in the others.
_LOOK_ELSEWHERE_S = 2.0


def not_found(args: argparse.Namespace, connection: Connection, key: bytes, progress: ProgressLine) -> NotFound:
    """The error, which says whether a short search found the key in another partition."""
    from lastword.kafka.topics.stray_keys import look_elsewhere

    if args.all_partitions:
        return NotFound(f"no key {args.key!r} in {args.topic}")
    search = look_elsewhere(connection, args.topic, key, within_s=_LOOK_ELSEWHERE_S, progress=progress.count)
    progress.clear()
    home = f"{args.topic}[{search.home}], where Java's partitioner (murmur2) puts it"
    if search.row is not None:
        return NotFound(
            f"no key {args.key!r} in {home}, but it is in {args.topic}[{search.row.partition}]: another partitioner "
            "wrote it there, or partitions were added; read it with --all-partitions"
        )
    if not search.is_certain:
        return NotFound(
            f"no key {args.key!r} in {home}; the other partitions were too large to search in {_LOOK_ELSEWHERE_S:g} s: "
            "if its writer used another partitioner, add --all-partitions"
        )
    return NotFound(f"no key {args.key!r} in {args.topic}")


def warn_of_split_keys(topic: str, folded: FoldedTable, codec: Codec) -> None:
    """Warns of keys in two partitions: the table shows one of the two rows, and maybe not the expected one."""
    advice = (
        "partitions were added, or writers use different partitioners: let every writer use murmur2 (Java's; "
        "partitioner=murmur2_random in librdkafka) and copy the table into a new topic with  "
        f"lastword dump {topic}  and  lastword load"
    )
    if keys := folded.split_keys:
        note(f"warning: {_some(keys, codec)} with live rows in two partitions; the later row counts: {advice}")
    if keys := folded.deleted_elsewhere:
        note(
            f"warning: {_some(keys, codec)} with a row in one partition and a later delete in another; the delete does "
            f"not remove the row, so the older value counts: {advice}, and delete the unwanted keys there"
        )


def _some(keys: frozenset[bytes], codec: Codec) -> str:
    """The number of keys, and the first key."""
    first = readable(min(keys), codec)
    return f"1 key ({first})" if len(keys) == 1 else f"{len(keys)} keys (the first is {first})"
