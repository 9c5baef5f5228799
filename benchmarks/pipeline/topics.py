"""The input of the benchmark: users, the topics of one run, the pipeline file that names them, and a recount."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from benchmarks.alternatives.rules_loop import TEAMS, matches_of
from benchmarks.input.topics import fresh_topic
from benchmarks.measuring.commands import lastword
from benchmarks.measuring.rounds import run
from lastword.core.errors import LastwordError
from lastword.kafka.client.connection import Connection
from lastword.kafka.client.reading import ReadQueue, fold_topic, log_bounds, read_columns
from lastword.kafka.topics.topic_changes import delete_topic

PARTITIONS = 5
# Users a second, for latency and recovery.
RATE = 100
_EVENTS = {"cleanup.policy": "delete", "retention.ms": "-1"}
# pipelines/teams.toml, as it is in the package.
_TEAMS = resources.files("lastword").joinpath("teams", "teams.toml")


@dataclass(frozen=True, kw_only=True)
class PipelineTopics:
    """The names of one run: its app, and its topics in place of new_users, actions and team_stats."""

    connection: Connection
    app: str
    users: str
    actions: str
    stats: str

    @property
    def changelog(self) -> str:
        return f"{self.app}-progress-changelog"

    def file(self, folder: Path) -> Path:
        """pipelines/teams.toml with these names."""
        file = folder / f"{self.app}.toml"
        file.write_text(_renamed(_TEAMS.read_text(encoding="utf-8"), self), encoding="utf-8")
        return file


def _renamed(text: str, topics: PipelineTopics) -> str:
    names = {"teams": topics.app, "new_users": topics.users, "actions": topics.actions, "team_stats": topics.stats}
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    return text


@contextmanager
def users_topic(connection: Connection) -> Iterator[str]:
    """An empty topic whose records don't expire."""
    with fresh_topic(connection, _name(), partitions=PARTITIONS, settings=_EVENTS) as topic:
        yield topic


def write_users(connection: Connection, topic: str, count: int, home: Path) -> None:
    run(users_command(connection, topic, "--count", str(count)), home)


def users_command(connection: Connection, topic: str, *options: str) -> list[str]:
    """The command that writes generated users."""
    return lastword("demo", "users", "--topic", topic, "--bootstrap-servers", connection.bootstrap_servers, *options)


@contextmanager
def fresh_topics(connection: Connection, users: str) -> Iterator[PipelineTopics]:
    """The topics of one run over these users. Topics that the run creates are deleted, too."""
    name = _name()
    topics = PipelineTopics(
        connection=connection, app=name, users=users, actions=f"{name}-actions", stats=f"{name}-stats"
    )
    with (
        fresh_topic(connection, topics.actions, partitions=PARTITIONS, settings=_EVENTS),
        fresh_topic(connection, topics.stats),
    ):
        try:
            yield topics
        finally:
            for topic in [each for each in connection.reach().topics if each.startswith(f"{name}-")]:
                if topic not in (topics.actions, topics.stats):
                    delete_topic(connection, topic)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Team -> number of users seen, users flagged, and actions."""

    processed: dict[str, int]
    flagged: dict[str, int]
    actions: dict[str, int]


def recounted(connection: Connection, users: str) -> Outcome:
    """The outcome that a run over these users must have."""
    matched: Counter[str] = Counter()
    seen = 0
    for values in _values(connection, users):
        seen += len(values)
        for value in values:
            matched.update(matches_of(json.loads(value)))
    flagged = {team: matched[team] for team, _, _, _ in TEAMS}
    return Outcome(processed=dict.fromkeys(flagged, seen), flagged=flagged, actions=flagged)


def written(topics: PipelineTopics) -> Outcome:
    """The outcome of a run, for a reader of committed data."""
    decode = msgspec.json.Decoder(_Action).decode
    actions: Counter[str] = Counter()
    for values in _values(topics.connection, topics.actions):
        actions.update(decode(value).team for value in values)
    rows = [json.loads(record.value or b"{}") for record in fold_topic(topics.connection, topics.stats).rows.values()]
    return Outcome(
        processed={row["team"]: row["processed"] for row in rows},
        flagged={row["team"]: row["flagged"] for row in rows},
        actions={team: actions[team] for team, _, _, _ in TEAMS},
    )


def refuse_other(who: str, outcome: Outcome, expected: Outcome) -> None:
    """LastwordError if the outcome is not the expected one: the figure of such a run would be worthless."""
    if outcome == expected:
        return
    for what in ("actions", "flagged", "processed"):
        mine, theirs = getattr(outcome, what), getattr(expected, what)
        if mine != theirs:
            team = next(team for team in theirs if mine.get(team) != theirs[team])
            raise LastwordError(
                f"benchmark: {who}: {what} of {team} is {mine.get(team)}, the recount gives {theirs[team]}"
            )


class _Action(msgspec.Struct):
    team: str


def _values(connection: Connection, topic: str) -> Iterator[list[bytes]]:
    first, last = log_bounds(connection, topic)
    for parts in read_columns(connection, topic, start=first, stop=last, queue=ReadQueue()):
        for part in parts:
            yield [value for value in part.values if value is not None]


def _name() -> str:
    return f"bench-pipeline-{uuid.uuid4().hex[:8]}"
