"""The topics that the results of a pipeline go to: their size limits, and which of them need keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.topics.cleanup_policy import cleanup_policy
from lastword.pipeline.evaluation.evaluate import Counter, fields_of, parts_of
from lastword.pipeline.evaluation.verdicts import SourceField
from lastword.pipeline.plan.plan import Pipeline

# The most bytes of a record beside its key, value and headers: the frame of its batch.
FRAME_BYTES = 200
# A batch of many records may be as large as this, where the topics take as much.
_BATCH_BYTES = 1024**2


@dataclass(frozen=True, kw_only=True)
class OutputTopics:
    """What a task must know to write results; sent to the workers."""

    source: str
    fields: tuple[SourceField, ...]
    rejects: str
    parts: tuple[str, ...]  # the expressions that may fail on a record, by number
    rules: tuple[tuple[str, str], ...]  # of each rule: its name, and the topic it emits to
    counters: tuple[Counter, ...]
    limits: Mapping[str, int]  # of each topic: max.message.bytes, which bounds a batch
    keyed: frozenset[str]  # the compacted topics, which take no record without a key

    @property
    def batch_bytes(self) -> int:
        """The largest batch: a topic's limit is for a whole batch, and Kafka refuses a larger one as a whole."""
        return min(_BATCH_BYTES, *(limit - FRAME_BYTES for limit in self.limits.values()))


def output_topics_of(connection: Connection, plan: Pipeline, counters: tuple[Counter, ...]) -> OutputTopics:
    """The output topics of a plan, with their settings of now."""
    admin = connection.admin()
    topics = {plan.changelog, plan.rejects, *(rule.to for rule in plan.rules)}
    settings = {topic: settings_now(admin, topic) for topic in sorted(topics)}
    return OutputTopics(
        source=plan.source.topic,
        fields=fields_of(plan),
        rejects=plan.rejects,
        parts=parts_of(plan, counters),
        rules=tuple((rule.name, rule.to) for rule in plan.rules),
        counters=counters,
        limits={topic: int(now["max.message.bytes"].value) for topic, now in settings.items()},
        keyed=frozenset(topic for topic, now in settings.items() if cleanup_policy(now).compacts),
    )
