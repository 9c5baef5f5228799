"""Mistakes in the topics that a pipeline file names: missing topics, and tables that would lose their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lastword.core.errors import ClusterUnreachable, LastwordError
from lastword.core.nearest import did_you_mean
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.live_settings import settings_now
from lastword.kafka.topics.cleanup_policy import CleanupPolicy, cleanup_policy
from lastword.kafka.topics.topic_names import is_internal, is_legal
from lastword.pipeline.plan.mistakes import Mistake, label
from lastword.pipeline.plan.plan_file import PlanFile


@dataclass(frozen=True, kw_only=True)
class _Use:
    """One use of a topic in the file; `is_table` and `keyless` say what is written to it."""

    topic: str
    label: str
    line: int
    is_table: bool = False
    keyless: bool = False


def topic_mistakes(plan: PlanFile, cluster: Connection | ClusterUnreachable) -> list[Mistake]:
    """Each missing topic once, at the first line that names it; one mistake if the cluster does not answer."""
    # An illegal name is reported already.
    uses = [use for use in _uses(plan) if is_legal(use.topic)]
    if not uses:
        return []
    try:
        if isinstance(cluster, ClusterUnreachable):
            raise cluster
        return list(_wrong_uses(uses, cluster))
    except ClusterUnreachable as away:
        return [Mistake(line=uses[0].line, text=f"the topics can't be checked: {away}", is_unreachable=True)]


def _wrong_uses(uses: list[_Use], connection: Connection) -> Iterator[Mistake]:
    admin = connection.admin()
    there = connection.reach(admin).topics
    reported: set[str] = set()
    policies: dict[str, CleanupPolicy] = {}
    for use in uses:
        problem = None
        if use.topic in reported:
            continue
        if use.topic not in there:
            reported.add(use.topic)
            problem = _missing(use, uses, list(there), connection)
        elif use.is_table or use.keyless:
            try:
                if use.topic not in policies:
                    policies[use.topic] = cleanup_policy(settings_now(admin, use.topic))
                problem = _misfit(use, policies[use.topic])
            except ClusterUnreachable:
                raise
            except LastwordError as refusal:
                reported.add(use.topic)
                problem = str(refusal)
        if problem is not None:
            yield Mistake(line=use.line, text=f"{use.label}: {problem}")


def _missing(use: _Use, uses: list[_Use], there: list[str], connection: Connection) -> str:
    hint = did_you_mean(use.topic, [name for name in there if not is_internal(name)])
    # By default lastword creates compacted topics.
    policy = "" if use.is_table else " --set cleanup.policy=delete"
    times = sum(other.topic == use.topic for other in uses)
    often = f" (named {times} times)" if times > 1 else ""
    make = f"make it with  lastword topic create {use.topic}{policy}"
    return f"no topic {use.topic!r} at {connection.bootstrap_servers}{often}: {f'{hint} or ' if hint else ''}{make}"


def _misfit(use: _Use, policy: CleanupPolicy) -> str | None:
    if use.is_table and not policy.compacts:
        return (
            f"topic {use.topic!r} is not compacted (cleanup.policy={policy.text}), so its rows would expire: "
            f"run  lastword topic alter {use.topic} --set cleanup.policy=compact"
        )
    if use.keyless and policy.compacts:
        return f"topic {use.topic!r} is compacted and takes no record without a key: give the rule a key"
    return None


def _uses(plan: PlanFile) -> Iterator[_Use]:
    pipeline, line = plan.pipeline, plan.places.line
    yield _Use(topic=pipeline.source.topic, label="source, topic", line=line("source", "topic"))
    for number, rule in enumerate(pipeline.rules):
        yield _Use(
            topic=rule.to,
            label=f"{label('rule', rule.name, number)}, to",
            line=line("rules", number, "to"),
            keyless=rule.key is None,
        )
    for number, table in enumerate(pipeline.tables):
        yield _Use(
            topic=table.topic,
            label=f"{label('table', table.topic, number)}, topic",
            line=line("tables", number, "topic"),
            is_table=True,
        )
