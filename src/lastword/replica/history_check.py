"""Whether a store's past still fits the topic: a topic can be made anew, truncated, or lose its oldest records."""

from __future__ import annotations

from dataclasses import dataclass

from lastword.core.position import Position
from lastword.kafka.topics.topic_snapshot import TopicSnapshot
from lastword.replica.store.store import Identity, Store


@dataclass(frozen=True, kw_only=True)
class Moved:
    """Why a store can't go on from where it is."""

    why: str
    # Whether the rows are still right for their position, so that they may be shown until new ones are there.
    rows_are_right: bool = False


def how_the_past_moved(store: Store, wanted: Identity, asked_from: Position, now: TopicSnapshot) -> Moved | None:
    """Why the store can't simply go on, or None when it can; `asked_from` is where it was before that look."""
    found, topic = store.identity, wanted.topic
    if found.topic_id != now.topic_id:
        return Moved(why=f"{topic} was recreated (its id was {found.topic_id}, now it is {now.topic_id})")
    if (found.key_codec, found.value_codec) != (wanted.key_codec, wanted.value_codec):
        return Moved(
            why=f"the codecs were {found.key_codec} and {found.value_codec}, "
            f"now they are {wanted.key_codec} and {wanted.value_codec}"
        )
    for partition, position in asked_from.items():
        high = now.high.get(partition, 0)
        if position > high:
            return Moved(why=f"{topic}[{partition}] was truncated: it ends at {high}, the replica is at {position}")
    for partition, position in store.position.items():
        if position < now.start[partition]:
            return Moved(
                why=f"{topic}[{partition}] now starts at {now.start[partition]}, the replica is at {position}",
                rows_are_right=True,
            )
    return None
