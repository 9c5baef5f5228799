"""The cluster over HTTP: brokers, topics, pipelines, and an hour of samples."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from lastword.core.clock import now_ms
from lastword.core.shapes.cluster import BrokerAddress, ClusterAnswer, TopicSummary, cluster_answer_with
from lastword.core.shapes.topics import CompactionBegun, TopicAnswer, TopicSize
from lastword.kafka.client.connection import Connection
from lastword.kafka.topics.topic_description import TopicDescription, total
from lastword.serve.cluster.cluster_watch import ClusterWatch, Look
from lastword.serve.cluster.pipelines import Pipelines
from lastword.serve.cluster.topic_answers import (
    census_of,
    cleanup_policy,
    is_compacted,
    partitions_of,
    rows_of,
    settings_of,
)
from lastword.serve.cluster.topic_compactions import Compacting, not_local
from lastword.serve.cluster.topic_counts import Counting, too_much_to_read
from lastword.serve.http.answers import COMMON, Answer, Refused, json_answer, public_message
from lastword.serve.tables.served_table import ServedTable

_NO_SETTINGS = "settings of {} are not known: they need the right DescribeConfigs on the topic"
_NO_SIZES = "sizes on disk are not known: the cluster does not report them"


class ServedCluster:
    """The watching thread prepares the answer about the whole cluster, so a request takes no time.

    `guests` says of each guest by its name whether it is present.
    """

    def __init__(
        self,
        connection: Connection,
        tables: Sequence[ServedTable],
        *,
        home: Path | None = None,
        guests: Mapping[str, bool] | None = None,
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._guests = guests or {}
        self._shape = cluster_answer_with(self._guests)
        self._watch = ClusterWatch(
            connection, home=home, lags=self._lag_of, lag_of_all=self._lag_of_all, looked=self._make
        )
        self._counting = Counting(connection)
        self._compacting = Compacting(connection, home, ended=self._counting.again)
        self._pipelines = Pipelines(tables)
        self._answer = b""
        self._make()

    def start(self) -> None:
        self._watch.start()

    def close(self) -> None:
        self._watch.close()
        self._compacting.close()
        self._counting.close()

    def answer(self) -> Answer:
        self._watch.asked()
        return Answer(200, COMMON, self._answer)

    def topic_answer(self, name: str) -> Answer:
        """One topic, which is then counted; Refused for an unknown topic. Blocks, so not for the event loop."""
        look, topic = self._seen(name)
        counted, why = self._counting.of(topic)
        tables = self._tables_of(name)
        return json_answer(
            TopicAnswer(
                name=topic.name,
                topic_id=topic.topic_id,
                cleanup_policy=cleanup_policy(topic),
                tables=[table.name for table in tables],
                settings=settings_of(topic),
                bytes=topic.bytes_on_disk,
                partitions=partitions_of(topic, None if counted is None else counted.scan),
                census=census_of(topic, counted),
                census_why=why,
                rows={table.name: rows_of(table) for table in tables},
                at=look.at,
                state="connected" if self._watch.state == "connected" else "away",
                why=self._watch.why or self._why_unknown([topic]),
                records_per_s=self._watch.records_per_s(name),
                compaction=self._compacting.of(topic.topic_id),
                history=self._watch.samples_of(name).oldest_first(),
            )
        )

    def compact(self, name: str) -> Answer:
        """Starts a compaction; Refused when it can't start. The answer about the topic has its progress."""
        look, topic = self._seen(name)
        if not look.is_local:
            raise not_local()
        if self._watch.state == "away":
            raise Refused("not_ready", "the cluster does not answer", "ask again soon; its status is at /cluster")
        if is_compacted(topic) is False:
            policy = cleanup_policy(topic)
            hint = f"change it with  lastword topic alter {name} --set cleanup.policy=compact"
            raise Refused("not_compacted", f"cleanup.policy={policy or ''}: Kafka never compacts this topic", hint)
        if topic.start_to_end is None:
            message = "the size of the topic is not known: a partition has no leader, or did not answer"
            raise Refused("not_ready", message, "ask again soon; the status of its partitions is at the topic")
        if (too_much := too_much_to_read(topic)) is not None:
            # A compaction keeps every key in memory, as a count does.
            raise Refused("too_large", f"{too_much} to read", f"compact it with  lastword topic compact {name}")
        counted = self._counting.known(name)
        records = None if counted is None else sum(each.records for each in counted.partitions)
        before = TopicSize(bytes=topic.bytes_on_disk, records=records)
        begun = self._compacting.begin(name, before, topic_id=topic.topic_id, cluster_id=look.cluster.cluster_id)
        return json_answer(CompactionBegun("running", begun.began))._replace(status=202)

    def _seen(self, name: str) -> tuple[Look, TopicDescription]:
        """A topic as it was seen last; Refused for an unknown topic."""
        self._watch.asked()
        look = self._watch.last
        if look is None:
            raise Refused(
                "not_ready", "the server has not reached the cluster yet", "ask again soon; its status is at /cluster"
            )
        if name not in look.cluster.topics:
            raise Refused("no_such_topic", "the cluster has no topic of this name")
        return look, look.cluster.topics[name]

    def _make(self) -> None:
        cluster = self._cluster(self._watch.last)
        fields = {**structs.asdict(cluster), **self._guests}
        self._answer = msgspec.json.encode(self._shape(**fields))

    def _cluster(self, look: Look | None) -> ClusterAnswer:
        cluster = None if look is None else look.cluster
        topics = [] if cluster is None else list(cluster.topics.values())
        brokers = () if cluster is None else cluster.brokers
        return ClusterAnswer(
            at=None if look is None else look.at,
            state=self._watch.state,
            why=self._watch.why or self._why_unknown(topics),
            cluster_id=None if cluster is None else cluster.cluster_id,
            is_local=None if look is None else look.is_local,
            brokers=[BrokerAddress(broker.node_id, broker.address) for broker in brokers],
            controller=None if cluster is None else cluster.controller,
            topics=[self._topic(topic) for topic in topics],
            pipelines=self._pipelines.summaries(now_ms(), time.monotonic()),
            history=self._watch.samples.oldest_first(),
        )

    def _why_unknown(self, topics: Sequence[TopicDescription]) -> str | None:
        """What the cluster hides from this server about these topics; None when it hides nothing."""
        unset = [topic.name for topic in topics if not topic.settings]
        unsized = next((topic.no_sizes_because for topic in topics if topic.no_sizes_because), None)
        whys = []
        if unset:
            whys.append(_NO_SETTINGS.format(unset[0] if len(unset) == 1 else f"{len(unset)} topics"))
        if unsized:
            whys.append(public_message(unsized, self._connection.bootstrap_servers, _NO_SIZES))
        return "; ".join(whys) or None

    def _topic(self, topic: TopicDescription) -> TopicSummary:
        return TopicSummary(
            name=topic.name,
            topic_id=topic.topic_id,
            cleanup_policy=cleanup_policy(topic),
            partitions=len(topic.partitions),
            replication=topic.replication,
            start_to_end=topic.start_to_end,
            bytes=topic.bytes_on_disk,
            records_per_s=self._watch.records_per_s(topic.name),
            under_replicated=sum(len(each.in_sync) < len(each.replicas) for each in topic.partitions),
            leaderless=sum(each.leader is None for each in topic.partitions),
            tables=[table.name for table in self._tables_of(topic.name)],
        )

    def _tables_of(self, topic: str) -> list[ServedTable]:
        return [table for table in self._tables if table.replica.topic == topic]

    def _lag_of(self, topic: str) -> int | None:
        return next((table.lag for table in self._tables_of(topic)), None)

    def _lag_of_all(self) -> int | None:
        return total([table.lag for table in self._tables]) if self._tables else None
