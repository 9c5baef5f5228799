"""The topics of a pipeline: its own are created; the topics that its file names must exist."""

from __future__ import annotations

from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.topics.cleanup_policy import cleanup_policy
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from lastword.pipeline.plan.plan import Pipeline

# Beyond the largest record of the source, for the headers of a rejected record.
_REJECTS_ROOM = 64 * 1024
# Few keys, written often: compacted soon, so that a start has little to read.
_COMPACTED_SOON = {"cleanup.policy": "compact", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}


def make_own_topics(connection: Connection, plan: Pipeline) -> None:
    """Creates the missing topics, and gives the changelog as many partitions as the source has."""
    admin = connection.admin()
    topics = connection.reach(admin).topics
    partitions = len(connection.topic(plan.source.topic, admin).partitions)
    if plan.changelog not in topics:
        create_topic(connection, plan.changelog, partitions=partitions, settings=_COMPACTED_SOON)
    elif not cleanup_policy(settings_now(admin, plan.changelog)).keeps_every_row:
        raise BadInput(
            f"topic {plan.changelog!r} holds the pipeline's progress and is not compacted, so its records may expire: "
            f"run  lastword topic alter {plan.changelog} --set cleanup.policy=compact"
        )
    elif len(topics[plan.changelog].partitions) < partitions:
        # The key of a record is the number of its partition, so no record moves.
        alter_topic(connection, plan.changelog, partitions=partitions, move_keys=True)
    if plan.rejects not in topics:
        largest = int(settings_now(admin, plan.source.topic)["max.message.bytes"].value) + _REJECTS_ROOM
        settings = {"cleanup.policy": "delete", "max.message.bytes": str(largest)}
        create_topic(connection, plan.rejects, partitions=partitions, settings=settings)
    if plan.status not in topics:
        create_topic(connection, plan.status, partitions=1, settings=_COMPACTED_SOON)
