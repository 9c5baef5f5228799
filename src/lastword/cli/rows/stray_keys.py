"""What the verbs that read rows say of keys that are not where Java's partitioner puts them, or in two partitions."""

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

# A key that is not in its own partition is looked for in the others for so many seconds.
_LOOK_ELSEWHERE_S = 2.0


def not_found(args: argparse.Namespace, connection: Connection, key: bytes, progress: ProgressLine) -> NotFound:
    """Says whether the key is in another partition than its own, as far as a short look shows."""
    from lastword.kafka.topics.stray_keys import look_elsewhere

    if args.all_partitions:
        return NotFound(f"no key {args.key!r} in {args.topic}")
    found = look_elsewhere(connection, args.topic, key, within_s=_LOOK_ELSEWHERE_S, progress=progress.count)
    progress.clear()
    home = f"{args.topic}[{found.home}], where Java's partitioner (murmur2) puts it"
    if found.row is not None:
        return NotFound(
            f"no key {args.key!r} in {home}, but it is in {args.topic}[{found.row.partition}]: another partitioner "
            "wrote it there, or partitions were added; read it with --all-partitions"
        )
    if not found.is_certain:
        return NotFound(
            f"no key {args.key!r} in {home}; the other partitions are too long for a short look: if its writer used "
            "another partitioner, add --all-partitions"
        )
    return NotFound(f"no key {args.key!r} in {args.topic}")


def warn_of_split_keys(topic: str, folded: FoldedTable, codec: Codec) -> None:
    """Keys in two partitions: the row that counts may be another than its writers meant."""
    advice = (
        "partitions were added, or writers disagree on the partitioner: let every writer use murmur2 (Java's; "
        "partitioner=murmur2_random in librdkafka) and copy the table into a new topic with  "
        f"lastword dump {topic}  and  lastword load"
    )
    if keys := folded.split_keys:
        note(f"warning: {_some(keys, codec)} with live rows in two partitions, of which the later one counts: {advice}")
    if keys := folded.deleted_elsewhere:
        note(
            f"warning: {_some(keys, codec)} with a row in one partition and a later delete in another, which removes "
            f"nothing there, so the older value counts: {advice}, and delete there what should be gone"
        )


def _some(keys: frozenset[bytes], codec: Codec) -> str:
    """How many, and the first of them."""
    first = readable(min(keys), codec)
    return f"1 key ({first})" if len(keys) == 1 else f"{len(keys)} keys (the first is {first})"
