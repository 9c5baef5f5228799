"""Whether a store's past still fits the topic: a topic can be recreated, truncated, or lose its oldest records."""

from __future__ import annotations

from dataclasses import dataclass

from lastword.core.position import Position
from lastword.kafka.topics.topic_snapshot import TopicSnapshot
from lastword.replica.store.identity import Identity
from lastword.replica.store.store import Store


@dataclass(frozen=True, kw_only=True)
class HistoryMoved:
    """Why a store can't continue from its position."""

    why: str
    # Whether the rows are right for their position: then readers may see them until the rebuild is done.
    rows_are_right: bool = False


def history_moved(
    store: Store, identity: Identity, position_before: Position, now: TopicSnapshot
) -> HistoryMoved | None:
    """Why the store can't continue, or None if it can; `position_before` is the store's, from before the snapshot."""
    found, topic = store.identity, identity.topic
    if found.topic_id != now.topic_id:
        return HistoryMoved(why=f"{topic} was recreated (its id was {found.topic_id}, now it is {now.topic_id})")
    if (found.key_codec, found.value_codec) != (identity.key_codec, identity.value_codec):
        return HistoryMoved(
            why=f"the codecs were {found.key_codec} and {found.value_codec}, "
            f"now they are {identity.key_codec} and {identity.value_codec}"
        )
    for partition, position in position_before.items():
        high = now.high.get(partition, 0)
        if position > high:
            return HistoryMoved(
                why=f"{topic}[{partition}] was truncated: it ends at {high}, the replica is at {position}"
            )
    for partition, position in store.position.items():
        if position < now.start[partition]:
            return HistoryMoved(
                why=f"{topic}[{partition}] now starts at {now.start[partition]}, the replica is at {position}",
                rows_are_right=True,
            )
    return None
