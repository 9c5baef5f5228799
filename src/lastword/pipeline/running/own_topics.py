"""The topics of a pipeline: its own are made, those that its file names must be there."""

from __future__ import annotations

from lastword.core.errors import BadInput
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.topics.cleanup_policy import cleanup_policy
from lastword.kafka.topics.topic_changes import alter_topic, create_topic
from lastword.pipeline.plan.plan import Pipeline

# More than the largest record of the source: what is rejected has headers besides.
_REJECTS_ROOM = 64 * 1024
# Few records, written often: compacted soon, so that a start has little to read.
_COMPACTED_SOON = {"cleanup.policy": "compact", "segment.ms": "600000", "min.cleanable.dirty.ratio": "0.1"}


def make_own_topics(connection: Connection, plan: Pipeline) -> None:
    """Makes those that are missing, and gives the changelog as many partitions as the source has by now."""
    admin = connection.admin()
    known = connection.reach(admin).topics
    partitions = len(connection.topic(plan.source.topic, admin).partitions)
    if plan.changelog not in known:
        create_topic(connection, plan.changelog, partitions=partitions, settings=_COMPACTED_SOON)
    elif not cleanup_policy(settings_now(admin, plan.changelog)).keeps_every_row:
        raise BadInput(
            f"topic {plan.changelog!r} holds the pipeline's progress and is not compacted: records of it may expire; "
            f"run  lastword topic alter {plan.changelog} --set cleanup.policy=compact"
        )
    elif len(known[plan.changelog].partitions) < partitions:
        # Each record lies in the partition that its number says, so none moves.
        alter_topic(connection, plan.changelog, partitions=partitions, move_keys=True)
    if plan.rejects not in known:
        largest = int(settings_now(admin, plan.source.topic)["max.message.bytes"].value) + _REJECTS_ROOM
        settings = {"cleanup.policy": "delete", "max.message.bytes": str(largest)}
        create_topic(connection, plan.rejects, partitions=partitions, settings=settings)
    if plan.status not in known:
        create_topic(connection, plan.status, partitions=1, settings=_COMPACTED_SOON)
