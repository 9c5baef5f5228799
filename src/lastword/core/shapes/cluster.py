"""The cluster over HTTP: brokers, topics, pipelines, and the samples of the last hour."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from msgspec import Meta, Struct, defstruct

from lastword.core.shapes.field_types import Count, Rate, TimeMs
from lastword.core.shapes.pipeline_status import BatchStatus, PipelineEvent
from lastword.core.shapes.topics import MOST_SAMPLES


class BrokerAddress(Struct, frozen=True):
    id: Count
    address: str


class TopicSummary(Struct, frozen=True, kw_only=True):
    """One topic in the list of all."""

    name: str
    topic_id: str
    cleanup_policy: Annotated[str | None, Meta(description="null without the right to read settings.")]
    partitions: Count
    replication: Count
    start_to_end: Annotated[Count | None, Meta(description="End minus start offsets: records there are at most.")]
    bytes: Annotated[Count | None, Meta(description="On disk, of one copy; null without the right to see it.")]
    records_per_s: Annotated[Rate | None, Meta(description="How fast its end offsets grow.")]
    under_replicated: Annotated[Count, Meta(description="Partitions with a replica that is not in sync.")]
    leaderless: Count
    tables: Annotated[list[str], Meta(description="Served from it.")]


class PipelineSummary(Struct, frozen=True, kw_only=True):
    """A pipeline whose status table is served."""

    app: str
    table: Annotated[str, Meta(description="The served table that has its status.")]
    state: Annotated[Literal["running", "silent"], Meta(description="silent: no new status for 10 s.")]
    at: TimeMs
    started: TimeMs
    generation: Count
    source: str
    emits: Annotated[list[str] | None, Meta(description="null where its status lacks it.")]
    keeps: list[str]
    rate: Rate
    lag: Count | None
    valid: Count
    rejected: Count
    batch: BatchStatus
    events: list[PipelineEvent]


class ClusterSample(Struct, frozen=True):
    at: TimeMs
    bytes: Count | None
    lag: Count | None


class ClusterAnswer(Struct, frozen=True, kw_only=True):
    """The cluster at the last look. Each guest of the server adds a field of its name: whether it is present."""

    at: Annotated[TimeMs | None, Meta(description="When the cluster was asked, in ms; null before the first answer.")]
    state: Annotated[
        Literal["connecting", "connected", "away"],
        Meta(description="away: the cluster does not answer; all is of the time `at`."),
    ]
    why: Annotated[str | None, Meta(description="What is unknown, why, and what to do.")]
    cluster_id: str | None
    is_local: Annotated[bool | None, Meta(description="Whether it lives in this server's home.")]
    brokers: list[BrokerAddress]
    controller: Count | None
    topics: list[TopicSummary]
    pipelines: list[PipelineSummary]
    history: Annotated[
        list[ClusterSample],
        Meta(description="A sample every 10 s, of the last hour, the oldest first.", max_length=MOST_SAMPLES),
    ]


def cluster_answer_with(guests: Iterable[str]) -> type[Struct]:
    """ClusterAnswer for a server with guests: for each guest one more field, whether the guest is present."""
    return defstruct(
        ClusterAnswer.__name__,
        [(guest, Annotated[bool, Meta(description=f"Whether /{guest} is served here.")]) for guest in guests],
        bases=(ClusterAnswer,),
        namespace={"__doc__": ClusterAnswer.__doc__},
        frozen=True,
        kw_only=True,
    )
